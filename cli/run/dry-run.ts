/** `headroom run --dry-run`: prints where the task would be placed now. */
import type { HeadroomClient, TaskRequest } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { size } from '../output/figures.ts'
import { visible } from '../output/terminal-text.ts'

export async function printDryRun(client: HeadroomClient, request: TaskRequest): Promise<number> {
  const { placement, starts, victims, wait } = await client.tasks.tryOut(request)
  const lines: string[] = []
  if (placement !== null) {
    const when =
      starts === 'now'
        ? 'It would start now'
        : 'It would start once ' +
          `${victims.length === 0 ? 'other tasks have left' : 'these tasks are swapped out'}`
    lines.push(`${when} on GPU ${placement.gpus.join(', ')} of ${placement.node_name}.`)
  }
  for (const { task_id: id, name, priority, mib } of victims)
    lines.push(`  swapped out: ${id} ${name} (P${priority}, ${size(mib)} per GPU)`)
  if (wait !== null) lines.push(`It would wait: ${wait.sentence}`)
  process.stdout.write(lines.map((line) => `${visible(line)}\n`).join(''))
  return EXIT_OK
}
