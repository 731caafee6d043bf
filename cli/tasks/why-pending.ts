/** `headroom why-pending [TASK]`. */
import type { Task } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { taskExplain } from './explain.ts'
import { age } from '../output/figures.ts'
import { printList, type Column } from '../output/table.ts'
import { openClient, type CommandOptions } from '../command/session.ts'

export interface WhyPendingOptions extends CommandOptions {
  readonly limit: number
}

const PAGE = 200

/** For one task all details; otherwise every pending task with its reason, in queue order. */
export async function whyPending(id: string | undefined, options: WhyPendingOptions): Promise<number> {
  if (id !== undefined) return taskExplain(id, options)
  const { output, limit, ...server } = options
  const waiting: Task[] = []
  for await (const task of openClient(server).tasks.each({ state: 'pending', limit: PAGE }))
    waiting.push(task)
  await printList(waiting.sort(byQueuePosition).slice(0, limit), columns(Date.now()), output)
  return EXIT_OK
}

/** 1. Queue position. 2. Order of submission. */
function byQueuePosition(a: Task, b: Task): number {
  return (a.wait?.queue_position ?? Infinity) - (b.wait?.queue_position ?? Infinity) || a.seq - b.seq
}

function columns(now: number): readonly Column<Task>[] {
  return [
    { title: '#', isNumber: true, of: (task) => task.wait?.queue_position ?? null },
    { title: 'ID', of: (task) => task.id },
    { title: 'NAME', isWide: true, of: (task) => task.name },
    { title: 'PRIO', of: (task) => `P${task.priority}` },
    { title: 'WAITS', isNumber: true, of: (task) => age(task.pending_since, now) },
    { title: 'REASON', of: (task) => task.wait?.reason ?? null },
    { title: 'WHY', of: (task) => task.wait?.sentence ?? null },
  ]
}
