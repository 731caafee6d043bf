/**
 * Shared by the durability tests: a controller on a data folder that is restarted repeatedly, and filled
 * stores.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import type { NodeRecord, Store, TaskRecord } from '../../controller/ports/store.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { headroom, Member, type Environment } from '../support/live-cluster.ts'
import { aBatch, aFinalTask, aNode, aRunningTask, aTask } from '../support/store-builders.ts'

const open = new Set<Member>()
const folders: string[] = []
afterAll(async () => {
  for (const member of open) await member.end()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Counts and durations: small in `make test`, the promised figures in `make test-durability`. */
export function figure(variable: string, byDefault: number): number {
  const text = process.env[variable]
  return text === undefined || text === '' ? byDefault : Number(text)
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-durability-'))
  folders.push(folder)
  return folder
}

export interface ControllerOn {
  readonly member: Member
  /** With /api/v1; of the last start. */
  url(): string
  /** Resolves once it listens, or once `isUp` returns true. */
  start(isUp?: (root: string) => Promise<boolean>): Promise<void>
}

/** @param inShell shell commands before it becomes the controller. */
export function controllerOn(
  dataDir: string,
  env: Environment = {},
  inShell: string | null = null,
): ControllerOn {
  const command =
    inShell === null ? headroom('serve') : ['bash', '-c', `${inShell}; exec "$0" "$@"`, ...headroom('serve')]
  const member = new Member('controller', command, {
    CONTROLLER_HTTP_PORT: '0',
    CONTROLLER_DATA_DIR: dataDir,
    // No broker runs at this address: no node sends messages, so only the writes of the test occur.
    CONTROLLER_NATS_URL: 'nats://127.0.0.1:9',
    LOG_LEVEL: 'fatal',
    ...env,
  })
  open.add(member)
  const rootOf = (from: number): string | undefined =>
    /http:\/\/[\d.]+:\d+/.exec(member.output.slice(from))?.[0]
  let before = 0
  return {
    member,
    url: () => `${rootOf(before) ?? ''}/api/v1`,
    async start(isUp = async () => true) {
      before = member.output.length
      const start = member.start(async () => {
        const root = rootOf(before)
        return root !== undefined && (await isUp(root))
      })
      await start.catch((error: unknown) => {
        throw new Error(`start ${member.starts} on ${dataDir}; its output: ${member.output.slice(before)}`, {
          cause: error,
        })
      })
    },
  }
}

const GPUS_PER_NODE = 8
const VRAM_MIB = 40_960

/** Nodes with one running task on each GPU; all other open tasks are pending. */
export async function fillStore(
  dataDir: string,
  {
    nodes,
    openTasks,
    finished = 0,
  }: { readonly nodes: number; readonly openTasks: number; readonly finished?: number },
  store: Store = createSqliteStore({ dataDir }),
): Promise<void> {
  const names = Array.from({ length: nodes }, (_, i) => `node-${i}`)
  const total = openTasks + finished
  const marks = { epoch: 1, nextTaskSeq: total + 1, nextEventSeq: 1, nextDecision: 1 }
  await store.commit(aBatch({ nodes: names.map(nodeRecord), marks }))
  const step = 1_000
  for (let from = 0; from < total; from += step) {
    const seqs = Array.from({ length: Math.min(step, total - from) }, (_, i) => from + i + 1)
    await store.commit(aBatch({ tasks: seqs.map((seq) => taskRecord(seq, finished, names)), marks }))
  }
  await store.close()
}

function nodeRecord(name: string, ordinal: number): NodeRecord {
  const gpus = Array.from({ length: GPUS_PER_NODE }, (_, index) => ({
    index,
    model: 'A100-40',
    physicalMib: VRAM_MIB,
    foreignMib: 0,
    roundNonP0: 1,
    roundP0: 1,
  }))
  return aNode({ id: nodeIdFromName(name), name, ordinal, overcommitOverride: null, gpus })
}

function taskRecord(seq: number, finished: number, nodeNames: readonly string[]): TaskRecord {
  const id = `00000000-0000-4000-8000-${String(seq).padStart(12, '0')}`
  const common = { id, seq, gpuCount: 1, groups: [], vramMib: 8_000 + (seq % 200) }
  if (seq <= finished) return aFinalTask(common)
  const place = seq - finished - 1
  const name = nodeNames[Math.floor(place / GPUS_PER_NODE)]
  const { placement } = aRunningTask()
  if (name === undefined || placement === null) return aTask(common)
  const quiet = {
    residency: 'resident',
    wantsGpu: true,
    heldGrowth: null,
    stopping: null,
    isInDoubt: false,
    isNoswapUntold: false,
  } as const
  const gpus = [place % GPUS_PER_NODE]
  return aRunningTask({
    ...common,
    placement: {
      ...placement,
      ...quiet,
      nodeId: nodeIdFromName(name),
      gpus,
      demandMib: common.vramMib,
      marks: [null],
    },
  })
}
