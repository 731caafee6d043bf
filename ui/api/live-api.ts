/** Base path of the live controller's API. */
export const LIVE_API = '/api/v1'
