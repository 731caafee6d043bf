/** The loop of a worker thread: it opens on request, then answers requests one after the other. */
import type { MessagePort } from 'node:worker_threads'
import { StoreFault } from '../../ports/store.ts'
import type { FrameRequest, Numbered, Reply } from './messages.ts'

export interface Served<R> {
  /** Messages of the opening, for the log. */
  readonly lines: readonly string[]
  answer(request: R): unknown
  close(): unknown
}

/**
 * A thread that cannot open reports why and ends; on a close request it answers and then ends. Every fault is
 * returned as one line.
 */
export function serve<R extends { readonly op: string }>(
  port: MessagePort,
  faultOf: (error: unknown) => StoreFault,
  open: () => Served<R> | Promise<Served<R>>,
): void {
  let served: Served<R> | null = null
  let previous = Promise.resolve()
  port.on('message', (message: Numbered<R | FrameRequest>) => {
    previous = previous.then(() => reply(message))
  })

  async function reply({ number, request }: Numbered<R | FrameRequest>): Promise<void> {
    try {
      port.postMessage({ number, ok: true, value: await answer(request) } satisfies Reply)
    } catch (error) {
      port.postMessage({
        number,
        ok: false,
        fault: faultOf(error).message,
        isGone: served === null,
      } satisfies Reply)
    }
    // The answer first: it would not be sent after close().
    if (request.op === 'close' || served === null) port.close()
  }

  async function answer(request: R | FrameRequest): Promise<unknown> {
    if (isFrame(request)) {
      if (request.op === 'close') return (await served?.close(), null)
      served = await open()
      return served.lines
    }
    if (served === null) throw new StoreFault('the store is not open')
    return served.answer(request)
  }
}

function isFrame(request: { readonly op: string }): request is FrameRequest {
  return request.op === 'open' || request.op === 'close'
}
