/**
 * Answers that were asked for before the page's own script was there (early.ts). Whoever asks for the same
 * first gets them.
 */

export interface Ahead {
  /** On the clock of `performance.now()`. */
  readonly at: number
  /** By what was asked for: path and query. */
  readonly answers: Map<string, Promise<Response>>
}

declare global {
  var headroomAhead: Ahead | undefined
}

/** Afterwards it is asked for anew: a page shows nothing old as new. */
const YOUNG_MS = 30_000

/** Once: the next one asks himself. */
export function takeAhead(url: string): Promise<Response> | null {
  const ahead = globalThis.headroomAhead
  const answer = ahead?.answers.get(url)
  ahead?.answers.delete(url)
  return answer === undefined || ahead === undefined || performance.now() - ahead.at > YOUNG_MS
    ? null
    : answer
}
