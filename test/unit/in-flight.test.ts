import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { InFlight } from '../../controller/api/in-flight.ts'

function connection(destroyed = false): Socket {
  return Object.assign(new EventEmitter(), { destroyed }) as unknown as Socket
}

it('counts requests until their answers are complete', () => {
  const inFlight = new InFlight()
  const [a, b] = [connection(), connection()]
  inFlight.began(a)
  inFlight.began(a)
  inFlight.began(b)
  expect(inFlight.count).toBe(3)
  inFlight.ended(a)
  expect(inFlight.count).toBe(2)
})

it('a connection that goes away takes along what it waited for, once', () => {
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

it('an answer to what was never counted changes nothing', () => {
  const inFlight = new InFlight()
  const [known, unknown] = [connection(), connection(true)]
  inFlight.began(unknown)
  inFlight.ended(unknown)
  inFlight.began(known)
  inFlight.ended(known)
  inFlight.ended(known)
  expect(inFlight.count).toBe(0)
})

it('has one listener for a connection, however many requests come on it', () => {
  const inFlight = new InFlight()
  const socket = connection()
  for (let i = 0; i < 100; i++) {
    inFlight.began(socket)
    inFlight.ended(socket)
  }
  expect(socket.listenerCount('close')).toBe(1)
})
