/**
 * Calls a listener from inside a reader of the network. What it throws is a broken invariant and ends the
 * process as such: it must not end up in the reader's hands, which would swallow it and read no more.
 */
export function callThrowingAsync(listener: () => void): void {
  try {
    listener()
  } catch (error) {
    setImmediate(() => {
      throw error
    })
  }
}
