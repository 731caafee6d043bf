/**
 * Responses that early.ts requested before the page's own script was loaded. The first identical request
 * takes them.
 */

/** Base path of the live controller's API. */
export const LIVE_API = '/api/v1'

export interface EarlyResponses {
  /** When they were requested, on the clock of `performance.now()`. */
  readonly at: number
  /** By URL: path and query. */
  readonly responses: Map<string, Promise<Response>>
}

declare global {
  var headroomEarly: EarlyResponses | undefined
}

/** Older responses are requested again, so that the page shows no outdated data as new. */
const MAX_AGE_MS = 30_000

/** Returns the response once; later requests for the same URL go to the controller. */
export function takeEarlyResponse(url: string): Promise<Response> | null {
  const ahead = globalThis.headroomEarly
  const answer = ahead?.responses.get(url)
  ahead?.responses.delete(url)
  return answer === undefined || ahead === undefined || performance.now() - ahead.at > MAX_AGE_MS
    ? null
    : answer
}
