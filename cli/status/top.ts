/** `headroom top`: the changing cluster. Repaints on a terminal until Ctrl-C; otherwise prints once. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ConnectionError,
  type HeadroomClient,
  type Node,
  type Summary,
  type Task,
} from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { paletteOf, visible } from '../output/terminal-text.ts'
import { bar, percent, size } from '../output/figures.ts'
import { untilInterrupted } from '../command/interrupts.ts'
import { nodeColumns } from '../nodes/nodes.ts'
import { printOne, tableOf } from '../output/table.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { taskColumns } from '../tasks/tasks.ts'

export interface TopOptions extends CommandOptions {
  /** Milliseconds between updates. */
  readonly interval: number
  readonly once?: boolean
}

interface ClusterView {
  readonly summary: Summary
  readonly nodes: readonly Node[]
  /** Placed ones first, newest first; limited to the number read. */
  readonly tasks: readonly Task[]
}

/** Maximum nodes and tasks read; no screen shows more. */
const NODES = 200
const TASKS = 100
/** xterm's alternate screen: restores the previous screen at the end. */
const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

export async function top({ output, interval, once, ...server }: TopOptions): Promise<number> {
  const client = openClient(server)
  const isPainted = (output === 'table' || output === 'wide') && once !== true && process.stdout.isTTY
  if (!isPainted) {
    const readView = await readCluster(client)
    if (output === 'table' || output === 'wide')
      process.stdout.write(pageOf(readView, output === 'wide', Infinity))
    else await printOne(readView, [], output)
    return EXIT_OK
  }
  // Errors at the start are printed on the ordinary screen.
  let look = await readCluster(client)
  process.stdout.write(ENTER)
  try {
    await untilInterrupted(async (signal) => {
      let trouble = ''
      while (!signal.aborted) {
        paint(`${pageOf(look, output === 'wide', process.stdout.rows - 2)}${trouble}`)
        await sleep(interval, undefined, { signal })
        try {
          look = await readCluster(client)
          trouble = ''
        } catch (error) {
          if (!(error instanceof ConnectionError)) throw error
          trouble = `${visible(error.message)}\n`
        }
      }
    })
  } finally {
    process.stdout.write(LEAVE)
  }
  return EXIT_OK
}

async function readCluster(client: HeadroomClient): Promise<ClusterView> {
  const [summary, nodes, running, pending] = await Promise.all([
    client.summary(),
    firstNodes(client),
    client.tasks.list({ state: 'running', limit: TASKS }),
    client.tasks.list({ state: 'pending', limit: TASKS }),
  ])
  return { summary, nodes, tasks: [...running.items, ...pending.items].slice(0, TASKS) }
}

/** A page of nodes is also limited by bytes. */
async function firstNodes(client: HeadroomClient): Promise<readonly Node[]> {
  const nodes: Node[] = []
  for await (const node of client.nodes.each({ limit: NODES })) if (nodes.push(node) === NODES) break
  return nodes
}

/** Overwrites the screen line by line to avoid flicker. */
function paint(page: string): void {
  const { columns } = process.stdout
  const lines = page
    .trimEnd()
    .split('\n')
    .map((line) => clipped(line, columns))
  process.stdout.write(`${HOME}${lines.map((line) => `${line}${CLEAR_LINE}\n`).join('')}${CLEAR_BELOW}`)
}

const BAR = 20

/** @param rows lines available in total */
function pageOf({ summary, nodes, tasks }: ClusterView, isWide: boolean, rows: number): string {
  const palette = paletteOf(process.stdout)
  const { vram, tasks: counts } = summary
  const now = Date.parse(summary.at)
  const head = [
    `${palette.bold('headroom')}  ${summary.at}  ${summary.nodes.up}/${summary.nodes.total} nodes, ` +
      `${summary.gpus.up}/${summary.gpus.total} GPUs up`,
    `tasks  ${counts.by_list.running} running, ${counts.by_list.pending} pending  utilization ` +
      `${percent(summary.utilization_percent) ?? '-'}  starvation ` +
      `${percent(summary.starvation_percent?.total ?? null) ?? '-'}`,
    `VRAM   ${bar(vram.used_mib, vram.physical_mib, BAR)} ${size(vram.used_mib)} of ` +
      `${size(vram.physical_mib)} used  ${bar(vram.committed_mib, vram.commit_limit_mib, BAR)} ` +
      `${size(vram.committed_mib)} of ${size(vram.commit_limit_mib)} committed`,
    '',
  ]
  const nodeLines = tableOf(nodes, nodeColumns(now), isWide, palette).split('\n')
  const taskLines = tableOf(tasks, taskColumns(now), isWide, palette).split('\n')
  const left = Math.max(4, rows - head.length)
  const shownNodes = nodeLines.slice(0, Math.max(left - taskLines.length, Math.floor(left / 2)))
  return [...head, ...shownNodes, ...taskLines].slice(0, Math.max(1, rows)).join('\n').trimEnd() + '\n'
}

/** Cuts to `width` characters; colours do not count. */
export function clipped(line: string, width: number): string {
  let shown = 0
  let text = ''
  for (const piece of line.split(/(\u001b\[\d+m)/)) {
    if (piece.startsWith('\u001b')) {
      text += piece
      continue
    }
    const kept = [...piece].slice(0, Math.max(0, width - shown))
    shown += kept.length
    text += kept.join('')
  }
  return text
}
