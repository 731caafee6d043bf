import { describe, expect, it } from 'vitest'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import { HostTask } from '../../gpu-server/devices/host-task.ts'
import { VramLimits } from '../../gpu-server/devices/vram-limits.ts'
import type { Guards } from '../../gpu-server/guard/guards.ts'

const found = { isStopped: false, isHeld: false }

function aTask(vramLimitMib?: number): HostTask {
  const start = {
    taskId: 't',
    attempt: 1,
    gpus: [0, 1],
    vramMib: 40,
    isLease: false,
    ...(vramLimitMib === undefined ? {} : { vramLimitMib }),
  } as unknown as AttemptStart
  return new HostTask(start, 0, {} as Guards, found, () => {})
}

function watched(task: HostTask) {
  const killed: HostTask[] = []
  const limits = new VramLimits((each) => killed.push(each))
  const sample = (...usedMib: readonly (number | null)[]): number => {
    limits.sampled(new Map([[task, { usedMib, isBusy: null }]]))
    return killed.length
  }
  return { limits, sample }
}

describe('a task with a limit of VRAM', () => {
  it('is ended by the second sample in a row above it, once, with both figures', () => {
    const task = aTask(50)
    const { limits, sample } = watched(task)
    expect([sample(51, 10), sample(50, 50), sample(10, 60), sample(10, 61), sample(10, 62)]).toEqual([
      0, 0, 0, 1, 1,
    ])
    expect(limits.endOf(task)).toEqual({
      exitCode: 137,
      detail:
        'VRAM_LIMIT_EXCEEDED: it used 61 MiB of VRAM on a GPU, and its limit (vram_limit_mib) is 50 MiB',
      didEndItself: true,
      didLeaseEnd: false,
    })
  })

  it('continues while it is at its limit, above its demand, or not measured', () => {
    const { limits, sample } = watched(aTask(50))
    expect([sample(50, 50), sample(50, 50), sample(null, null), sample(null, null)]).toEqual([0, 0, 0, 0])
    expect(limits.endOf(aTask(50))).toBeNull()
  })
})

it('A task without a limit of VRAM is never ended for its use', () => {
  const { sample } = watched(aTask())
  expect([sample(9000, 9000), sample(9000, 9000)]).toEqual([0, 0])
})
