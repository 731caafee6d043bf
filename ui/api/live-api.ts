/** Where the interface of the live controller begins. */
export const LIVE_API = '/api/v1'
