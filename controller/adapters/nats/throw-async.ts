/**
 * Calls a listener from a network reader. An exception is a broken invariant and must end the process: thrown
 * here, the reader would swallow it and stop reading.
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
