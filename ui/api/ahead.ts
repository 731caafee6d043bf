/**
 * Responses that early.ts requested before the page's own script was loaded. The first identical request
 * takes them.
 */

export interface Ahead {
  /** When they were requested, on the clock of `performance.now()`. */
  readonly at: number
  /** By URL: path and query. */
  readonly answers: Map<string, Promise<Response>>
}

declare global {
  var headroomAhead: Ahead | undefined
}

/** Older responses are requested again, so that the page shows no outdated data as new. */
const YOUNG_MS = 30_000

/** Returns the response once; later requests for the same URL go to the controller. */
export function takeAhead(url: string): Promise<Response> | null {
  const ahead = globalThis.headroomAhead
  const answer = ahead?.answers.get(url)
  ahead?.answers.delete(url)
  return answer === undefined || ahead === undefined || performance.now() - ahead.at > YOUNG_MS
    ? null
    : answer
}
