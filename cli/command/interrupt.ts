/** Work that the user ends with Ctrl-C, without that being a failure. */

/** Runs the work until it ends, or SIGINT or SIGTERM aborts its signal. */
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
