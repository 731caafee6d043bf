/**
 * The main thread's end of a worker thread: requests, answers, and one fault for all when the thread is gone.
 */
import { basename, extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { StoreFault } from '../../ports/store.ts'
import type { FrameRequest, Note, Numbered, Reply } from './messages.ts'
import { oneLine } from './one-line.ts'

/** @template R the requests, besides those of the frame; A the answers by `op` */
export interface WorkerLink<R extends { readonly op: keyof A }, A> {
  /**
   * Opens the file in the thread; the first call. Resolves to lines for the log. Rejects with StoreFault if
   * the file cannot be opened: the thread has then ended, and every request is answered with the same fault.
   */
  open(): Promise<readonly string[]>
  /** Rejects with StoreFault if the thread answers with one or is gone. */
  ask<Q extends R>(request: Q): Promise<A[Q['op']]>
  /** Resolves when the thread has closed the file and ended. Never rejects; may be called repeatedly. */
  close(): Promise<void>
}

interface Waiting {
  resolve(value: unknown): void
  reject(fault: StoreFault): void
}

/**
 * @param store its name, for messages
 * @param hear `onFault` is called when the thread ends without being asked to, `onNote` with its notes of
 * type N
 */
export function createWorkerLink<R extends { readonly op: keyof A }, A, N = never>(
  store: string,
  file: URL,
  workerData: unknown,
  hear: { readonly onFault?: (fault: StoreFault) => void; readonly onNote?: (note: N) => void } = {},
): WorkerLink<R, A> {
  const name = basename(file.pathname, extname(file.pathname))
  const worker = new Worker(file, { workerData, name })
  const waiting = new Map<number, Waiting>()
  let lastNumber = 0
  let gone: StoreFault | null = null
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  worker.on('message', (reply: Reply | Note<N>) => {
    if ('note' in reply) return hear.onNote?.(reply.note)
    const asked = waiting.get(reply.number)
    waiting.delete(reply.number)
    if (reply.ok) return asked?.resolve(reply.value)
    const fault = new StoreFault(reply.fault)
    asked?.reject(fault)
    if (reply.isGone) end(fault)
  })
  worker.once('error', (cause: Error) => {
    const fault = new StoreFault(`${store}: the ${name} thread failed: ${oneLine(cause.message)}`, { cause })
    end(fault)
    hear.onFault?.(fault)
  })
  worker.once('exit', () => end(new StoreFault(`${store}: the store is closed`)))

  function end(fault: StoreFault): void {
    gone ??= fault
    for (const asked of waiting.values()) asked.reject(gone)
    waiting.clear()
  }

  function send(request: R | FrameRequest): Promise<unknown> {
    if (gone !== null) return Promise.reject(gone)
    const number = ++lastNumber
    return new Promise((resolve, reject) => {
      waiting.set(number, { resolve, reject })
      worker.postMessage({ number, request } satisfies Numbered<R | FrameRequest>)
    })
  }

  return {
    open: () => send({ op: 'open' }) as Promise<readonly string[]>,
    ask: <Q extends R>(request: Q) => send(request) as Promise<A[Q['op']]>,
    close: async () => {
      await send({ op: 'close' }).catch(() => undefined)
      await ended
    },
  }
}
