/** A worker process's side of worker-process.ts. */

/** Minimum interval between checks that the parent process lives. */
const PARENT_CHECK_MS = 250

export interface WorkerLink {
  post(message: object): void
  listen(listener: (message: unknown) => void): void
  /**
   * Ends this process when its parent is gone: to be called from time to time by work that does not let
   * messages in.
   */
  exitIfOrphaned(): void
}

/**
 * Call once per process. The process then ends when its parent ends or orders it: an interrupt from the
 * keyboard reaches both.
 */
export function linkToParent(): WorkerLink {
  if (process.send === undefined) throw new Error('this module runs only in a worker process')
  const parent = process.ppid
  let lookedAt = 0
  process.on('disconnect', () => process.exit())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  return {
    post: (message) => void process.send?.(message),
    listen: (listener) => void process.on('message', listener),
    exitIfOrphaned() {
      const now = performance.now()
      if (now - lookedAt < PARENT_CHECK_MS) return
      lookedAt = now
      if (process.ppid !== parent) process.exit(1)
    },
  }
}
