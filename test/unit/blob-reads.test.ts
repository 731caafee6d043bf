/** A node gets the files of tasks that are placed on it, and no others. */
import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createController } from '../../controller/controller.ts'
import type { Blobs } from '../../controller/ports/blobs.ts'
import type { Body } from '../../protocol/envelope.ts'
import { PROTOCOL_VERSION, TASK_DEFAULTS } from '../../protocol/limits.ts'
import type { ReadBlob } from '../../protocol/file-messages.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { DEFAULT_RUN_POLICY } from '../../protocol/task.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { HELLO } from '../support/hello.ts'
import { plainBus } from '../support/plain-bus.ts'

const MANIFEST = 'a'.repeat(64)
const CHUNK = 'b'.repeat(64)
const FOREIGN = 'c'.repeat(64)
const ALPHA = HELLO.node_id
const BETA = nodeIdFromName('beta')

/** Has one folder of one owner. */
const blobs: Blobs = {
  maxWorkdirBytes: 1_000,
  missing: () => Promise.resolve([]),
  put: () => Promise.reject(new Error('not used')),
  whyUnusable: () => Promise.resolve(null),
  belongsTo: (owner, manifest, hash) =>
    Promise.resolve(owner === 'ada' && manifest === MANIFEST && (hash === MANIFEST || hash === CHUNK)),
  read: (_owner, hash) => Promise.resolve({ base64: Buffer.from(hash).toString('base64'), bytes: 64 }),
  usage: () => Promise.resolve({ ownBytes: 0, maxBytesPerOwner: 0, totalBytes: 0, maxBytes: 0 }),
}

async function world() {
  const clock = new VirtualClock(1_000_000)
  const bus = plainBus(clock)
  const refused: (readonly [string | null, string])[] = []
  const controller = createController(
    { clock, random: createSeededRandom(1), bus, store: createMemoryStore() },
    { areHeartbeatsElided: true, blobs, onRefused: (id, reason) => refused.push([id, reason]) },
  )
  await controller.start()
  let seq = 0
  const head = () => {
    const sent = (seq += 1)
    const boot = { counter: 1, random: 'x' }
    return { v: PROTOCOL_VERSION, id: `m${sent}`, sent_mono: sent, boot, seq: sent, epoch: 1 } as const
  }
  const run = (): void => clock.run(clock.now(), () => false)
  bus.subscribe(nodeSubject('*', 'command'), () => {})
  const join = (nodeId: string, name: string): void => {
    const body = { ...HELLO, node_id: nodeId, name, features: ['files'] }
    bus.request(nodeSubject(nodeId, 'hello'), { ...head(), body }, 1000, () => {})
    run()
  }
  const read = async (subjectOf: string, asked: Partial<ReadBlob>): Promise<Body | null> => {
    const body: ReadBlob = {
      op: 'read_blob',
      node_id: subjectOf,
      task_id: 'a',
      attempt: 1,
      sha256: CHUNK,
      offset: 0,
      max_bytes: 64,
      ...asked,
    }
    let answer: Body | null = null
    bus.request(nodeSubject(subjectOf, 'telemetry'), { ...head(), body }, 1000, (outcome) => {
      answer = outcome.answered ? outcome.answer.body : null
    })
    run()
    await new Promise((resolve) => setImmediate(resolve))
    run()
    return answer
  }
  join(ALPHA, 'alpha')
  const request = {
    ...TASK_DEFAULTS,
    ...DEFAULT_RUN_POLICY,
    name: null,
    vramMib: 100,
    groups: [],
    labels: {},
  }
  const task = { ...request, id: 'a', owner: 'ada', command: ['train'], workdir: MANIFEST }
  controller.commands.submitTask(task, () => {})
  run()
  await new Promise((resolve) => setImmediate(resolve))
  run()
  expect(controller.views.openTask('a')?.placement?.node.id).toBe(ALPHA)
  join(BETA, 'beta')
  return { read, refused }
}

describe('a read of uploaded files', () => {
  it('is answered for the node of the attempt', async () => {
    const { read, refused } = await world()
    expect(await read(ALPHA, {})).toMatchObject({ op: 'blob', sha256: CHUNK, bytes: 64 })
    expect(await read(ALPHA, { sha256: MANIFEST })).toMatchObject({ op: 'blob', sha256: MANIFEST })
    expect(refused).toEqual([])
  })

  it.each<[string, string, Partial<ReadBlob>, string]>([
    ['another node', BETA, {}, 'foreign_files'],
    ['another node for the manifest', BETA, { sha256: MANIFEST }, 'foreign_files'],
    ['a hash that is not of the task', ALPHA, { sha256: FOREIGN }, 'foreign_files'],
    ['another attempt', ALPHA, { attempt: 2 }, 'foreign_files'],
    ['a task that does not exist', ALPHA, { task_id: 'b' }, 'foreign_files'],
    ['a node that names another one', BETA, { node_id: ALPHA }, 'wrong_sender'],
  ])('is refused and reported from %s', async (_what, from, asked, reason) => {
    const { read, refused } = await world()
    expect(await read(from, asked)).toEqual({ op: 'refused', reason })
    expect(refused).toEqual([[from, reason]])
  })
})
