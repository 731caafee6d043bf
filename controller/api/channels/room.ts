/** Waits until a connection takes more bytes. */
import type { Duplex } from 'node:stream'

/** Resolves at once for a connection that is closed: what is written to it is dropped. */
export function roomIn(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve()
    const done = (): void => {
      socket.off('drain', done)
      socket.off('close', done)
      resolve()
    }
    socket.on('drain', done)
    socket.on('close', done)
  })
}
