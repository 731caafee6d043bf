/** Channels at the controller: between the connection of a client and a GPU server, bounded and audited. */
import { Duplex, PassThrough } from 'node:stream'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { AuditSubject } from '../../controller/api/auth/audit-trail.ts'
import { OpenChannels, type ChannelLimits } from '../../controller/api/channels/open-channels.ts'
import { ApiProblem } from '../../controller/api/http/errors.ts'
import type { ChannelAnswer, ChannelPiece, TaskChannels } from '../../controller/ports/task-channels.ts'
import { encodeFrame, endIn, FRAME, FrameReader, type Frame } from '../../protocol/channel-frames.ts'
import { WAIT } from '../support/wait.ts'

const SUBJECT: AuditSubject = {
  kind: 'work',
  actor: 'ann',
  role: 'submitter',
  tokenId: 'token-1',
  address: '127.0.0.1',
  requestId: 'r1',
  action: 'openChannel',
  target: 'POST /api/v1/tasks/t1/channels',
}
const PLACE = { taskId: 't1', attempt: 2, nodeId: 'n1', nodeName: 'alpha', subject: SUBJECT }
const EXEC = { kind: 'exec', command: ['true'], terminal: null } as const

/** A GPU server that answers as a test says. */
class FakeServer implements TaskChannels {
  readonly written: string[] = []
  readonly closed: string[] = []
  answerOpen: ChannelAnswer<'opened'> = 'opened'
  /** Answers writes; null: never. */
  canWrite = true
  #onWrite: (() => void)[] = []
  #pieces: ((piece: ChannelAnswer<ChannelPiece>) => void)[] = []
  readonly #queued: ChannelAnswer<ChannelPiece>[] = []

  open(): Promise<ChannelAnswer<'opened'>> {
    return Promise.resolve(this.answerOpen)
  }
  async write(_node: string, _channel: string, n: number, data: string): Promise<ChannelAnswer<'written'>> {
    if (!this.canWrite) await new Promise<void>((resolve) => this.#onWrite.push(resolve))
    this.written[n - 1] = data
    return 'written'
  }
  read(): Promise<ChannelAnswer<ChannelPiece>> {
    const next = this.#queued.shift()
    if (next !== undefined) return Promise.resolve(next)
    return new Promise((resolve) => this.#pieces.push(resolve))
  }
  close(_node: string, channel: string): void {
    this.closed.push(channel)
  }

  letWrite(): void {
    this.canWrite = true
    for (const go of this.#onWrite.splice(0)) go()
  }
  says(piece: ChannelAnswer<ChannelPiece>): void {
    const reader = this.#pieces.shift()
    if (reader === undefined) this.#queued.push(piece)
    else reader(piece)
  }
  sends(n: number, ...frames: readonly Uint8Array[]): void {
    this.says({ n, data: Buffer.concat(frames).toString('base64'), isEnded: false })
  }
  get received(): Buffer {
    const frames = new FrameReader().take(
      Buffer.concat(this.written.map((data) => Buffer.from(data, 'base64'))),
    )
    return Buffer.concat(frames.map(({ content }) => content))
  }
}

/** Both ends of a connection. */
function connection(): { readonly near: Duplex; readonly far: Duplex; readonly frames: Frame[] } {
  const [up, down] = [new PassThrough(), new PassThrough()]
  const near = Duplex.from({ readable: up, writable: down })
  const far = Duplex.from({ readable: down, writable: up })
  const frames: Frame[] = []
  const reader = new FrameReader()
  far.on('data', (bytes: Buffer) => frames.push(...reader.take(bytes)))
  far.on('error', () => undefined)
  near.on('error', () => undefined)
  return { near, far, frames }
}

function world(limits: Partial<ChannelLimits> = {}) {
  const server = new FakeServer()
  const notes: AuditSubject[] = []
  let isGood = true
  const access = {
    authenticator: { isGood: () => isGood },
    trail: { note: (subject: AuditSubject) => notes.push(subject) },
    now: () => 0,
  }
  const channels = new OpenChannels(server, access as never, limits)
  const connect = async (): Promise<ReturnType<typeof connection>> => {
    const secret = await channels.open(PLACE, EXEC)
    if (typeof secret !== 'string') throw new Error('refused')
    const ends = connection()
    expect(channels.connect(secret, ends.near, Buffer.alloc(0), () => {})).toBe(true)
    return ends
  }
  return { server, notes, channels, connect, revoke: () => (isGood = false) }
}

function lastEnd(frames: readonly Frame[]): unknown {
  const last = frames.at(-1)
  return last?.kind === FRAME.ended ? endIn(last.content) : null
}

/** Not those of streams: they would wait for a turn that never comes. */
const useFakeTimers = () =>
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })

afterEach(() => vi.useRealTimers())

describe('a channel at the controller', () => {
  it('passes frames both ways, ends with the last one, and is audited without its bytes', async () => {
    const { server, notes, channels, connect } = world()
    const { far, frames } = await connect()
    far.write(encodeFrame(FRAME.data, Buffer.from('to the task')))
    await vi.waitFor(() => expect(server.received.toString()).toBe('to the task'), WAIT)
    server.sends(
      1,
      encodeFrame(FRAME.data, Buffer.from('from it')),
      encodeFrame(FRAME.errors, Buffer.from('!')),
    )
    server.sends(2, encodeFrame(FRAME.ended, Buffer.from('code 3')))
    await vi.waitFor(() => expect(lastEnd(frames)).toEqual({ kind: 'exit', code: 3 }), WAIT)
    expect(frames.map(({ kind }) => kind)).toEqual([FRAME.data, FRAME.errors, FRAME.ended])
    await vi.waitFor(() => expect(channels.count).toBe(0), WAIT)
    expect(server.closed).toHaveLength(1)
    expect(notes.map(({ actor, action }) => [actor, action])).toEqual([
      ['ann', 'openChannel'],
      ['ann', 'closeChannel'],
    ])
    expect(notes[0]?.target).toMatch(/^task t1 attempt 2 channel \w{8}: exec \["true"\]$/)
    expect(notes[1]?.target).toMatch(/: exit code 3 after \d+ s, 11 bytes in, 8 out: exec \["true"\]$/)
  })

  it('does not read from a client while the task takes nothing', async () => {
    const { server, connect } = world()
    const { near, far } = await connect()
    server.canWrite = false
    const bytes = Buffer.alloc(60_000, 'x')
    for (let i = 0; i < 20; i++) far.write(encodeFrame(FRAME.data, bytes))
    await vi.waitFor(() => expect(near.isPaused()).toBe(true), WAIT)
    server.letWrite()
    await vi.waitFor(() => expect(near.isPaused()).toBe(false), WAIT)
  })

  it('is cut when a client sends what it may not', async () => {
    const { server, connect } = world()
    const { far, frames } = await connect()
    far.write(encodeFrame(FRAME.request, Buffer.from('1\0')))
    await vi.waitFor(() => expect(lastEnd(frames)).toMatchObject({ kind: 'cut' }), WAIT)
    expect(server.written).toEqual([])
    expect(server.closed).toHaveLength(1)
  })

  it('ends at the server when the client disconnects, and at the client when the server ends', async () => {
    const { server, connect } = world()
    const gone = await connect()
    gone.near.destroy()
    await vi.waitFor(() => expect(server.closed).toHaveLength(1), WAIT)
    const left = await connect()
    // The read of the first channel gets the first answer.
    for (let i = 0; i < 4; i++) server.says(null)
    await vi.waitFor(
      () =>
        expect(lastEnd(left.frames)).toEqual({
          kind: 'cut',
          why: 'the GPU server of the task does not respond',
        }),
      5_000,
    )
    const restarted = await connect()
    server.says({ refused: 'unknown_channel' })
    await vi.waitFor(
      () =>
        expect(lastEnd(restarted.frames)).toEqual({
          kind: 'cut',
          why: 'the GPU server of the task restarted, or it closed the channel',
        }),
      WAIT,
    )
  })

  it('has a secret that is valid once and for 10 s', async () => {
    useFakeTimers()
    const { server, channels, notes } = world()
    const secret = (await channels.open(PLACE, EXEC)) as string
    const { near } = connection()
    expect(channels.connect('x'.repeat(43), near, Buffer.alloc(0), () => {})).toBe(false)
    expect(channels.connect(secret, near, Buffer.alloc(0), () => {})).toBe(true)
    expect(channels.connect(secret, near, Buffer.alloc(0), () => {})).toBe(false)
    const late = (await channels.open(PLACE, EXEC)) as string
    vi.advanceTimersByTime(10_000)
    expect(channels.connect(late, connection().near, Buffer.alloc(0), () => {})).toBe(false)
    expect(server.closed).toHaveLength(1)
    expect(notes.at(-1)?.target).toContain('the client did not connect')
  })

  it('ends after its token, without bytes for the idle time, and after the total time', async () => {
    useFakeTimers()
    const revoked = world()
    const first = await revoked.connect()
    revoked.revoke()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(lastEnd(first.frames)).toEqual({ kind: 'cut', why: 'the token was revoked or has expired' })
    const idle = world()
    const second = await idle.connect()
    await vi.advanceTimersByTimeAsync(3_590_000)
    expect(lastEnd(second.frames)).toBeNull()
    second.far.write(encodeFrame(FRAME.data, Buffer.from('x')))
    await vi.advanceTimersByTimeAsync(3_590_000)
    expect(lastEnd(second.frames)).toBeNull()
    await vi.advanceTimersByTimeAsync(20_000)
    expect(lastEnd(second.frames)).toEqual({ kind: 'cut', why: 'no data was sent for 60 minutes' })
    const total = world({ idleMs: 200_000_000 })
    const third = await total.connect()
    await vi.advanceTimersByTimeAsync(86_410_000)
    expect(lastEnd(third.frames)).toEqual({
      kind: 'cut',
      why: 'the channel was open for 24 hours, which is the limit',
    })
  })

  it('is refused beyond the number of a caller and of all', async () => {
    const { channels, server } = world({ maxOfCaller: 2, maxOpen: 3 })
    await channels.open(PLACE, EXEC)
    await channels.open(PLACE, EXEC)
    await expect(channels.open(PLACE, EXEC)).rejects.toThrow(
      /Too many channels are open \(limit per caller: 2\)/,
    )
    const other = { ...PLACE, subject: { ...SUBJECT, tokenId: 'token-2' } }
    await channels.open(other, EXEC)
    await expect(channels.open(other, EXEC)).rejects.toBeInstanceOf(ApiProblem)
    channels.closeAll()
    expect(channels.count).toBe(0)
    expect(server.closed).toHaveLength(3)
    server.answerOpen = { refused: 'not_in_vram' }
    expect(await channels.open(PLACE, EXEC)).toEqual({ refused: 'not_in_vram' })
    server.answerOpen = null
    expect(await channels.open(PLACE, EXEC)).toBeNull()
    expect(server.closed).toHaveLength(4)
    expect(channels.count).toBe(0)
  })
})
