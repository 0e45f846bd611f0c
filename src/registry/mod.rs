//! Reading and writing objects by the rules of Kubernetes.
