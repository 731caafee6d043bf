/** Frames of channels into tasks: hostile input from clients, GPU servers and the guard program. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  encodeCut,
  encodeFrame,
  encodeWindow,
  endIn,
  FRAME,
  FrameFault,
  FrameReader,
  MAX_FRAME_CONTENT,
  requireOfClient,
} from '../../protocol/channel-frames.ts'

it('Frames arrive as they were sent, in whatever pieces their bytes arrive', () => {
  const frame = fc.record({
    kind: fc.integer({ min: 0, max: 6 }),
    content: fc.uint8Array({ maxLength: 300 }),
  })
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 8 }), fc.integer({ min: 1, max: 64 }), (sent, piece) => {
      const bytes = Buffer.concat(sent.map(({ kind, content }) => encodeFrame(kind, content)))
      const reader = new FrameReader()
      const received = []
      for (let at = 0; at < bytes.length; at += piece)
        received.push(...reader.take(bytes.subarray(at, at + piece)))
      expect(received.map(({ kind, content }) => [kind, [...content]])).toEqual(
        sent.map(({ kind, content }) => [kind, [...content]]),
      )
      expect(reader.isEmpty).toBe(true)
    }),
  )
})

it('A frame that is too long is refused before its content arrives', () => {
  const head = encodeFrame(FRAME.data, new Uint8Array(0))
  new DataView(head.buffer).setUint32(1, MAX_FRAME_CONTENT + 1)
  expect(() => new FrameReader().take(head)).toThrow(FrameFault)
  const longest = encodeFrame(FRAME.data, new Uint8Array(MAX_FRAME_CONTENT))
  expect(new FrameReader().take(longest)).toHaveLength(1)
})

it('A client may send data, its end, and the size of its terminal', () => {
  const frames = (bytes: Uint8Array) => new FrameReader().take(bytes)
  for (const kind of [FRAME.data, FRAME.end]) requireOfClient({ kind, content: new Uint8Array(0) })
  frames(encodeWindow(24, 80)).forEach(requireOfClient)
  for (const kind of [FRAME.errors, FRAME.ended, FRAME.opened, FRAME.request, 7, 255])
    expect(() => requireOfClient({ kind, content: new Uint8Array(0) })).toThrow(FrameFault)
  expect(() => requireOfClient({ kind: FRAME.window, content: new Uint8Array(3) })).toThrow(FrameFault)
})

it('The last frame tells how a channel ended', () => {
  const end = (text: string) => endIn(new TextEncoder().encode(text))
  expect(end('code 3')).toEqual({ kind: 'exit', code: 3 })
  expect(end('signal 9')).toEqual({ kind: 'signal', number: 9 })
  expect(end('closed')).toEqual({ kind: 'closed' })
  expect(end('nonsense')).toEqual({ kind: 'cut', why: '' })
  const [frame] = new FrameReader().take(encodeCut('the task has ended'))
  expect(frame?.kind).toBe(FRAME.ended)
  expect(endIn(frame?.content ?? new Uint8Array(0))).toEqual({ kind: 'cut', why: 'the task has ended' })
})
