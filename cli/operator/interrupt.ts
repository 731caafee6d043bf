/** What a person ends with Ctrl-C, and what that is not a failure of. */

/** Runs until it ends by itself or SIGINT or SIGTERM comes; the signal it is given aborts then. */
export async function untilInterrupted(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const end = new AbortController()
  const stop = (): void => end.abort()
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    await work(end.signal)
  } catch (error) {
    if (!end.signal.aborted) throw error
  } finally {
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}
