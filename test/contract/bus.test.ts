/** The simulated bus and the bus over a broker satisfy one contract. */
import { describe, it } from 'vitest'
import { plainBus } from '../support/plain-bus.ts'
import type { BusMode } from '../../simulator/network/sim-bus.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { busContract } from '../support/bus-contract.ts'
import type { BusWorld } from '../support/bus-contract.ts'
import { startNatsServer, whyNoNatsServer } from '../support/nats-server.ts'
import type { NatsServer } from '../support/nats-server.ts'
import { connectedBus, settled, until } from '../support/nats-world.ts'

busContract('the simulated bus, by reference,', () => simulatedWorld('reference'))
busContract('the simulated bus, through the codec,', () => simulatedWorld('wire'))

const missing = whyNoNatsServer()
if (missing === null) busContract('the bus over NATS', natsWorld)
else describe('the bus over NATS', () => it.skip(missing))

function simulatedWorld(mode: BusMode): Promise<BusWorld> {
  const clock = new VirtualClock(0)
  const bus = plainBus(clock, mode, 1)
  return Promise.resolve({
    controller: bus,
    node: bus,
    settle: () => Promise.resolve(),
    until: (what, holds) => {
      while (!holds()) if (!clock.step(Infinity)) return Promise.reject(new Error(`never: ${what}`))
      return Promise.resolve()
    },
    pass: (ms) => {
      const end = clock.now() + ms
      while (clock.step(end));
      return Promise.resolve()
    },
    close: () => Promise.resolve(),
  })
}

let server: NatsServer | null = null

async function natsWorld(): Promise<BusWorld> {
  server ??= await startNatsServer()
  const controller = await connectedBus(server.url)
  const node = await connectedBus(server.url)
  return {
    controller,
    node,
    settle: async () => {
      await settled(controller)
      await settled(node)
    },
    until,
    pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: async () => {
      await controller.close()
      await node.close()
    },
  }
}
