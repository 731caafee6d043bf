/** Sizes that bound what a request may hold. */

/** The largest body: 256 KiB. The largest sensible one, a group of some thousand nodes, is below. */
export const BODY_LIMIT_BYTES = 256 * 1024

/** The longest part of a path, encoded: an id of 200 characters, each of up to 12 (`%F0%9F%98%80`). */
export const URI_PARAMETER_LIMIT = 2400

/** The longest id that is looked up. */
export const ID_LIMIT = 200

/** How long a request may take to arrive, body included. */
export const REQUEST_TIMEOUT_MS = 30_000

/** The most points of a series in one answer. */
export const MAX_POINTS = 5_000

/** The most values in one answer of /series: scopes × names × points. Some 2 MB of JSON. */
export const MAX_SERIES_VALUES = 200_000

/** How long its headers alone may take. */
export const HEADERS_TIMEOUT_MS = 15_000

/**
 * How often the two limits above are looked at. Node's own 30 s would let a slow request last twice as long
 * as they say.
 */
export const TIMEOUTS_CHECKED_EVERY_MS = 1_000

/** Connections at a time; further ones are closed at once. Each may hold one open stream. */
export const MAX_CONNECTIONS = 4_096
