/**
 * The same life over a bad network: messages are lost, duplicated, delayed and reordered (protocol principles
 * 1 and 2).
 */
import type { Rule } from './rule.ts'
import type { Examiner, Faults } from './examiner.ts'
import { NO_FAULTS } from './examiner.ts'
import { hasFinished, newTask, SOON_MS, start, stop, swap } from './orders.ts'

const ROUNDS = 40
const FAULTS: Faults = { drop: 0.2, duplicate: 0.2, delay: 0.3, delayMs: 1_500 }
const TRIES = 20

export const FAULT_RULES: readonly Rule[] = [
  {
    rule: 'R1–R8',
    claim:
      `with messages lost, doubled and delayed, each of ${ROUNDS} attempts starts at most ` +
      'once, ends exactly once, and is reported',
    async examine(e) {
      e.faults = FAULTS
      const tasks: string[] = []
      for (let round = 0; round < ROUNDS; round++) tasks.push(await liveThrough(e))
      e.faults = NO_FAULTS
      return settle(e, tasks)
    },
  },
]

/** Starts a task, may swap it out and in, and stops it; each command is repeated until it is answered. */
async function liveThrough(e: Examiner): Promise<string> {
  const taskId = newTask(e)
  const first = await repeated(() => start(e, taskId, 1))
  if (first?.outcome === 'accepted' || first?.outcome === 'running') {
    void swap(e, 'swap_out', taskId, 1, 1)
    void swap(e, 'swap_in', taskId, 1, 2)
  }
  await repeated(() => stop(e, taskId, 1))
  return taskId
}

async function repeated<T>(ask: () => Promise<T | null>): Promise<T | null> {
  for (let tried = 0; tried < TRIES; tried++) {
    const answer = await ask()
    if (answer !== null) return answer
  }
  return null
}

async function settle(e: Examiner, tasks: readonly string[]): Promise<string | null> {
  const isEmpty = await e.until(() => {
    const last = e.snapshot?.body
    return last !== undefined && last.tasks.length === 0 && last.finished_unacked.length === 0
  }, 4 * SOON_MS)
  if (!isEmpty) {
    const left = e.snapshot?.body.tasks.map((task) => task.task_id).join(', ')
    return (
      `after the network was well again for ${(4 * SOON_MS) / 1000} s there is still: ` +
      `${left || 'an end that is not acknowledged'}`
    )
  }
  for (const taskId of tasks) {
    const events = e.eventsOf(taskId, 1)
    const starts = events.filter((event) => event.kind === 'started').length
    const ends = events.filter((event) => event.kind === 'finished').length
    if (starts > 1 || ends > 1)
      return `${taskId} was reported as started ${starts} times and as finished ${ends} times`
    if (starts === 1 && !hasFinished(e, taskId, 1))
      return `${taskId} was started and its end was never reported`
  }
  return null
}
