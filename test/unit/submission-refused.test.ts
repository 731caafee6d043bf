import { describe, expect, test } from 'vitest'
import { exitCodeOf } from '../../services/exit-codes.ts'
import { MAX_PENDING_TASKS } from '../../controller/engine/inputs/commands/task-commands.ts'
import { SubmissionRefused } from '../../simulator/world/submission-refused.ts'
import type { World } from '../../simulator/world/world.ts'
import { node, play, task } from '../support/world-builder.ts'

describe('a task of a scenario that the controller refuses', () => {
  test('ends the run with a message of one line and exit code 1', async () => {
    const isFull = (world: World) =>
      Object.assign(world.controller.cluster, { pendingCount: MAX_PENDING_TASKS })
    const run = play({ nodes: [node({ name: 'a' })], tasks: [task({ id: 't1' })] }, { onWorld: isFull })
    await expect(run).rejects.toThrow(
      /^the controller refused task t1: too many tasks are pending \(limit: 1000000\)/,
    )
    expect(exitCodeOf(new SubmissionRefused('t1', { code: 'conflict', detail: 'there is one' }))).toBe(1)
  })
})
