/** Two programs that together need more memory than GPU 0 has alternate on it. */
import type { Mib } from '../../protocol/units.ts'
import { hostMemoryLeft } from '../../gpu-server/devices/nvidia/host-memory.ts'
import type { GpuHost } from './gpu-host.ts'
import { expect, say } from './say.ts'

/** Share of the free memory of the GPU: two of them do not fit together. */
const PROGRAM_PERCENT = 55
/**
 * Both are in host memory for a moment, so the free memory used is at most this share of it; a third program
 * that stays takes the rest of the GPU.
 */
const HOST_PERCENT = 80

/**
 * NVML sees each swap-out, a restore without free memory is refused, and every program finds its data
 * unchanged. Returns the memory used.
 */
export async function takeTurns(host: GpuHost, program: string): Promise<Mib> {
  const { accelerator } = host
  const [gpu] = accelerator.gpus()
  const freeAtFirst = await host.freeMib()
  const inMemory = hostMemoryLeft({ proc: '/proc', cgroup: '/sys/fs/cgroup' }, process.pid) ?? 0
  const room = Math.min(freeAtFirst, percent(inMemory, HOST_PERCENT))
  say(
    `${gpu?.model}, driver ${accelerator.driver}: ${gpu?.physical_mib} MiB, ${freeAtFirst} MiB free, ` +
      `${room} MiB used for swaps`,
  )
  const ballast = room < freeAtFirst ? await host.start(program, 'ballast', freeAtFirst - room) : null

  const a = await host.start(program, 'a', percent(room, PROGRAM_PERCENT))
  const why = await accelerator.whyNotSwappable(a)
  if (why !== null) throw new Error(`it cannot be swapped: ${why}`)
  const beforeOut = await host.freeMib()
  await host.swap('out', a)
  const freed = (await host.freeMib()) - beforeOut
  expect(freed >= a.vramMib, `NVML sees ${freed} MiB freed by the swap-out of ${a.vramMib} MiB`)
  expect((await accelerator.residencyOf(a)) === 'swapped_out', 'the driver says that a is swapped out')

  const b = await host.start(program, 'b', percent(room, PROGRAM_PERCENT))
  const together = a.vramMib + b.vramMib + (ballast?.vramMib ?? 0)
  expect(together > freeAtFirst, `the programs need ${together} MiB together`)
  await host.swap('in', a, 'no_vram')
  await host.swap('out', b)
  await host.swap('in', a)
  expect(await a.isIntact(), 'a finds its data unchanged')
  await host.swap('out', a)
  await host.swap('in', b)
  expect(await b.isIntact(), 'b finds its data unchanged')
  await Promise.all([a.end(), b.end()])
  await host.untilFree(percent(room, 2 * PROGRAM_PERCENT - 20))
  return room
}

function percent(mib: Mib, share: number): Mib {
  return Math.floor((mib * share) / 100)
}
