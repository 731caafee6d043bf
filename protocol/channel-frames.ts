/**
 * The content of a channel into a task (`headroom exec`, `headroom port-forward`), the same between client
 * and controller, controller and GPU server, and GPU server and `headroom-guard`: frames of a kind (one
 * byte), the size of the content (four bytes, most significant first), and the content.
 */

export const FRAME = {
  /** To the task: input. From the task: output, or bytes of the connection. */
  data: 0,
  /** From the task: its standard error. */
  errors: 1,
  /** No more data follows in this direction. */
  end: 2,
  /** To a terminal: rows and columns, two bytes each. */
  window: 3,
  /** From the task, the last frame: a text, see `endIn`. */
  ended: 4,
  /** From the guard program to the server only: the channel is open. */
  opened: 5,
  /** From the server to the guard program only: what to run. */
  request: 6,
} as const

const FRAME_HEAD_BYTES = 5
/** Maximum content of one frame. */
export const MAX_FRAME_CONTENT = 64 * 1024

/** Kinds that a client may send. */
const OF_CLIENTS: ReadonlySet<number> = new Set([FRAME.data, FRAME.end, FRAME.window])
const WINDOW_BYTES = 4

export interface Frame {
  readonly kind: number
  readonly content: Uint8Array
}

/** The bytes are not frames. */
export class FrameFault extends Error {
  override readonly name = 'FrameFault'
}

export function encodeFrame(kind: number, content: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEAD_BYTES + content.length)
  bytes[0] = kind
  new DataView(bytes.buffer).setUint32(1, content.length)
  bytes.set(content, FRAME_HEAD_BYTES)
  return bytes
}

export function encodeWindow(rows: number, columns: number): Uint8Array {
  const content = new Uint8Array(WINDOW_BYTES)
  const view = new DataView(content.buffer)
  view.setUint16(0, rows)
  view.setUint16(2, columns)
  return encodeFrame(FRAME.window, content)
}

/** Throws FrameFault for a frame that a client may not send. */
export function requireOfClient({ kind, content }: Frame): void {
  const isWell = OF_CLIENTS.has(kind) && (kind !== FRAME.window || content.length === WINDOW_BYTES)
  if (!isWell) throw new FrameFault(`a client sends no frame of kind ${kind} and ${content.length} bytes`)
}

/** Divides bytes into frames, in whatever pieces they arrive. */
export class FrameReader {
  #rest: Uint8Array = new Uint8Array(0)

  /** True between two frames. */
  get isEmpty(): boolean {
    return this.#rest.length === 0
  }

  /** Returns the frames that are complete. Throws FrameFault. */
  take(bytes: Uint8Array): Frame[] {
    let rest = bytes
    if (this.#rest.length > 0) {
      rest = new Uint8Array(this.#rest.length + bytes.length)
      rest.set(this.#rest)
      rest.set(bytes, this.#rest.length)
    }
    const frames: Frame[] = []
    while (rest.length >= FRAME_HEAD_BYTES) {
      const size = new DataView(rest.buffer, rest.byteOffset).getUint32(1)
      if (size > MAX_FRAME_CONTENT) throw new FrameFault(`a frame of ${size} bytes is too long`)
      if (rest.length < FRAME_HEAD_BYTES + size) break
      frames.push({ kind: rest[0] ?? 0, content: rest.slice(FRAME_HEAD_BYTES, FRAME_HEAD_BYTES + size) })
      rest = rest.subarray(FRAME_HEAD_BYTES + size)
    }
    this.#rest = rest.slice()
    return frames
  }
}

/** How a channel ended: a command by itself or by a signal, a connection, or why it was cut. */
export type ChannelEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly number: number }
  | { readonly kind: 'closed' }
  | { readonly kind: 'cut'; readonly why: string }

/** Reads the text of an `ended` frame: `code 3`, `signal 9`, `closed`, or `error TEXT`. */
export function endIn(content: Uint8Array): ChannelEnd {
  const text = new TextDecoder().decode(content)
  const [, word, rest = ''] = /^(code|signal|closed|error)(?: (.*))?$/s.exec(text) ?? []
  if (word === 'code') return { kind: 'exit', code: Number(rest) }
  if (word === 'signal') return { kind: 'signal', number: Number(rest) }
  return word === 'closed' ? { kind: 'closed' } : { kind: 'cut', why: rest }
}

/** The last frame of a channel that did not end by itself. */
export function encodeCut(why: string): Uint8Array {
  return encodeFrame(FRAME.ended, new TextEncoder().encode(`error ${why}`))
}
