//! What the server serves, as clients ask for it: /api, /apis, aggregated discovery, /version.
