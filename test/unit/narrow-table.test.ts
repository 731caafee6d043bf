import stringWidth from 'string-width'
import { describe, expect, it } from 'vitest'
import { printList } from '../../cli/output/table.ts'
import { taskColumns } from '../../cli/tasks/tasks.ts'
import type { Task } from '../../clients/typescript/client.ts'

const ID = '0b6f4c1e-6a53-4f0a-9d5c-0e9f3c1f7c11'
const TASK = {
  id: ID,
  name: ID,
  state: 'running',
  stopping_since: null,
  held: false,
  residency: 'swapped_out',
  priority: 2,
  vram_mib: 16_384,
  gpu_count: 1,
  placement: { node_name: 'a100-rack-12-host-3' },
  submitted_at: '2026-01-02T03:04:05.000Z',
  wait: null,
  end_reason: null,
} as unknown as Task

async function table(out: { readonly isTTY?: boolean; readonly columns?: number }): Promise<string> {
  let text = ''
  const rows = [TASK, { ...TASK, name: 'a-name-of-thirty-characters-xxx' }]
  const columns = taskColumns(Date.parse('2026-01-02T04:04:05.000Z'))
  await printList(rows, columns, 'table', { ...out, write: (part) => (text += part) })
  return text.replace(/\u001b\[\d+m/g, '')
}

describe('a table of tasks', () => {
  it('fits a terminal of 80 columns, with ids that commands accept', async () => {
    const lines = (await table({ isTTY: true, columns: 80 })).trimEnd().split('\n')
    for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(80)
    expect(lines[1]).toMatch(/^0b6f4c1e  -  /)
    expect(lines[2]).toMatch(/^0b6f4c1e  a-name-of-thirt…  running  swapped_out  P2 .* a100-rack…  60m$/)
  })

  it('is complete on a wider terminal, and in a file or a pipe', async () => {
    const wide = await table({ isTTY: true, columns: 200 })
    expect(wide).toContain(`${ID}  ${ID} `)
    expect(await table({ columns: 80 })).toBe(wide)
  })
})
