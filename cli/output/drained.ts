/** Resolves when a stream accepts more data, or never will again. */
export function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done)
      stream.off('close', done)
      stream.off('error', done)
      resolve()
    }
    stream.once('drain', done)
    stream.once('close', done)
    stream.once('error', done)
  })
}
