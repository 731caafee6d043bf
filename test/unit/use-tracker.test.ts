/** When a task counts as busy: its own signals, samples, and requests that wait for it. */
import { expect, it } from 'vitest'
import type { DeviceListener } from '../../gpu-server/core/device.ts'
import { HostTask } from '../../gpu-server/devices/host-task.ts'
import { UseTracker } from '../../gpu-server/devices/use-tracker.ts'
import type { Guards } from '../../gpu-server/guard/guards.ts'
import type { SwapMethod } from '../../protocol/units.ts'
import type { Clock } from '../../controller/ports/clock.ts'

function tracked(swapMethod: SwapMethod = 'hooks') {
  let now = 0
  const clock = { now: () => now } as unknown as Clock
  const said: string[] = []
  const listener = {
    gpuWanted: () => said.push('wanted'),
    gpuUsed: () => said.push('used'),
  } as unknown as DeviceListener
  const uses = new UseTracker(clock, 5_000, () => listener)
  const start = { taskId: 'a', attempt: 1, gpus: [0], vramMib: 1, isLease: false, swapMethod }
  const task = new HostTask(
    start as unknown as HostTask['start'],
    0,
    {} as Guards,
    { isStopped: false, isHeld: false },
    () => {},
  )
  return { said, uses, task, wait: (ms: number) => void (now += ms) }
}

it('A task that runs while it is out stays wanted by a request, although it says that it is idle', () => {
  const { said, uses, task } = tracked()
  task.isResident = false
  uses.requested(task)
  uses.signalled(task, false)
  expect([said, task.wantsGpu]).toEqual([['wanted'], true])
  task.isResident = true
  uses.returned(task)
  uses.signalled(task, false)
  expect([said, task.wantsGpu]).toEqual([['wanted', 'used'], false])
})

it('A task that is out without a request is idle when it says so', () => {
  const { said, uses, task } = tracked()
  task.isResident = false
  uses.signalled(task, true)
  uses.signalled(task, false)
  expect(said).toEqual(['wanted', 'used'])
})

it('A request that is held while its task leaves wakes it, however long the swap-out takes', () => {
  const { said, uses, task, wait } = tracked()
  task.isMoving = true
  uses.requested(task)
  wait(60_000)
  uses.sampled(task, false)
  uses.signalled(task, false)
  expect([said, task.wantsGpu]).toEqual([['wanted'], true])
  task.isResident = task.isMoving = false
  uses.signalled(task, true)
  uses.signalled(task, false)
  expect([said, task.wantsGpu]).toEqual([['wanted'], true])
})

it('A stopped task that answers its request before its return is noted is idle when it says so', () => {
  const { said, uses, task } = tracked('driver')
  task.isResident = false
  uses.requested(task)
  task.isMoving = true
  uses.signalled(task, true)
  uses.signalled(task, false)
  task.isMoving = false
  task.isResident = true
  uses.returned(task)
  expect([said, task.wantsGpu]).toEqual([['wanted', 'used'], false])
})
