import { describe, expect, it } from 'vitest'
import { ForeignMemory } from '../../simulator/fleet/foreign-memory.ts'
import { HostLink } from '../../simulator/fleet/host-link.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

describe('a host link', () => {
  it('transfers copies one after the other, none faster than its own link', () => {
    const link = new HostLink(1000)
    expect(link.pass(0, 5000, 2000)).toBe(5000)
    expect(link.pass(1000, 1000, 2000)).toBe(6000)
    expect(link.pass(10_000, 1000, 4000)).toBe(14_000)
    expect(link.pass(11_000, 1000, 500)).toBe(12_000)
  })

  it('imposes no limit if no bandwidth is given', () => {
    const link = new HostLink(null)
    expect([link.pass(0, 5000, 2000), link.pass(0, 5000, 2000)]).toEqual([2000, 2000])
  })
})

describe('foreign memory', () => {
  const world = (residentMib: number, steps: ConstructorParameters<typeof ForeignMemory>[2]) => {
    const clock = new VirtualClock(0)
    const seen: string[] = []
    const host = {
      gpuCount: 2,
      physicalMib: 10_000,
      resident: residentMib,
      residentMib: () => host.resident,
      reserveMib: () => 1000,
      setForeign: (gpu: number, mib: number) => seen.push(`${clock.now()}: ${gpu} has ${mib}`),
      measure: (gpu: number, freeMib: number) => seen.push(`${clock.now()}: ${gpu} measures ${freeMib}`),
      report: () => seen.push(`${clock.now()}: report`),
    }
    void new ForeignMemory(clock, 0, steps, host)
    return { clock, seen, host }
  }

  it('is reported at once, and measured every second until the reserve is free again', () => {
    const { clock, seen, host } = world(8000, [{ atMs: 500, mib: 1500, gpus: [1] }])
    clock.run(2600, () => false)
    expect(seen).toEqual([
      '500: 1 has 1500',
      '500: report',
      '500: 1 measures 500',
      '1500: 1 measures 500',
      '2500: 1 measures 500',
    ])
    host.resident = 0
    clock.run(20_000, () => false)
    expect(seen).toHaveLength(5)
  })

  it('is limited to the VRAM free at that instant, and can shrink again', () => {
    const { clock, seen } = world(8000, [
      { atMs: 100, mib: 50_000, gpus: [0] },
      { atMs: 600, mib: 0, gpus: null },
    ])
    clock.run(20_000, () => false)
    expect(seen).toEqual([
      '100: 0 has 2000',
      '100: report',
      '100: 0 measures 0',
      '600: 0 has 0',
      '600: 1 has 0',
      '600: report',
    ])
  })
})
