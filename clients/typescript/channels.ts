/** Channels into running tasks: a command besides that of the task, or a connection to one of its ports. */
import type { Duplex } from 'node:stream'
import type { ChannelBody, ChannelRequestBody } from '../../controller/api/channels/schema.ts'
import {
  encodeFrame,
  encodeWindow,
  endIn,
  FRAME,
  FrameReader,
  MAX_FRAME_CONTENT,
  type ChannelEnd,
} from '../../protocol/channel-frames.ts'
import { ConnectionError } from './errors.ts'
import type { CallOptions } from './simulations.ts'
import { pathSegment, type Transport } from './transport.ts'

export type { ChannelEnd, ChannelRequestBody as ChannelRequest }

const PROTOCOL = 'headroom-channel'

export class TaskChannel {
  readonly task: Omit<ChannelBody, 'path'>
  readonly #socket: Duplex

  constructor(task: Omit<ChannelBody, 'path'>, socket: Duplex) {
    this.task = task
    this.#socket = socket
    // The loop over the frames rejects.
    socket.on('error', () => undefined)
  }

  /** Resolves when the task can receive more data. */
  async send(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += MAX_FRAME_CONTENT)
      await this.#write(encodeFrame(FRAME.data, bytes.subarray(at, at + MAX_FRAME_CONTENT)))
  }

  /** No more input follows. */
  sendEnd(): Promise<void> {
    return this.#write(encodeFrame(FRAME.end, new Uint8Array(0)))
  }

  /** The size of the terminal has changed. */
  resize(rows: number, columns: number): void {
    void this.#write(encodeWindow(rows, columns))
  }

  /** Ends what runs for the channel. */
  close(): void {
    this.#socket.destroy()
  }

  /**
   * Passes what comes from the task, and waits for each piece. Resolves with the end; rejects with
   * ConnectionError when the connection breaks.
   */
  async receive(to: {
    data(bytes: Uint8Array): Promise<void> | void
    errors(bytes: Uint8Array): Promise<void> | void
    /** No more data follows. */
    end?(): void
  }): Promise<ChannelEnd> {
    const frames = new FrameReader()
    try {
      for await (const bytes of this.#socket as AsyncIterable<Uint8Array>) {
        for (const { kind, content } of frames.take(bytes)) {
          if (kind === FRAME.data) await to.data(content)
          else if (kind === FRAME.errors) await to.errors(content)
          else if (kind === FRAME.end) to.end?.()
          else if (kind === FRAME.ended) return endIn(content)
        }
      }
    } catch (error) {
      throw new ConnectionError('the connection to the controller was lost', false, error)
    } finally {
      this.#socket.destroy()
    }
    throw new ConnectionError('the connection to the controller was lost', false)
  }

  #write(bytes: Uint8Array): Promise<void> {
    if (this.#socket.destroyed || this.#socket.write(bytes)) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        this.#socket.off('drain', done)
        this.#socket.off('close', done)
        resolve()
      }
      this.#socket.on('drain', done)
      this.#socket.on('close', done)
    })
  }
}

export function channelsOf(transport: Transport) {
  return {
    /** Runs a command in the running task, or connects to a port on which it listens. */
    openChannel: async (
      id: string,
      request: ChannelRequestBody,
      { signal }: CallOptions = {},
    ): Promise<TaskChannel> => {
      const { path, ...task } = await transport.json<ChannelBody>({
        method: 'POST',
        path: `/tasks/${pathSegment(id)}/channels`,
        body: request,
        signal,
      })
      return new TaskChannel(task, await transport.upgrade(path, PROTOCOL))
    },
  }
}
