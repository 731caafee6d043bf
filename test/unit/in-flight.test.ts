import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { InFlight } from '../../controller/api/metrics/request-log.ts'

function connection(destroyed = false): Socket {
  return Object.assign(new EventEmitter(), { destroyed }) as unknown as Socket
}

it('A request is counted until its response is complete', () => {
  const inFlight = new InFlight()
  const [a, b] = [connection(), connection()]
  inFlight.began(a)
  inFlight.began(a)
  inFlight.began(b)
  expect(inFlight.count).toBe(3)
  inFlight.ended(a)
  expect(inFlight.count).toBe(2)
})

it('A closed connection removes its requests from the count, once', () => {
  const inFlight = new InFlight()
  const [gone, other] = [connection(), connection()]
  for (const socket of [gone, gone, other]) inFlight.began(socket)
  inFlight.ended(gone)
  gone.emit('close')
  expect(inFlight.count).toBe(1)
  inFlight.ended(gone)
  inFlight.began(gone)
  expect(inFlight.count).toBe(1)
})

it('A response to an uncounted request does not change the count', () => {
  const inFlight = new InFlight()
  const [known, unknown] = [connection(), connection(true)]
  inFlight.began(unknown)
  inFlight.ended(unknown)
  inFlight.began(known)
  inFlight.ended(known)
  inFlight.ended(known)
  expect(inFlight.count).toBe(0)
})

it('A connection has one close listener, however many requests use it', () => {
  const inFlight = new InFlight()
  const socket = connection()
  for (let i = 0; i < 100; i++) {
    inFlight.began(socket)
    inFlight.ended(socket)
  }
  expect(socket.listenerCount('close')).toBe(1)
})
