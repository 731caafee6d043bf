/** The contract of every store. test/contract/store.test.ts runs it for each implementation. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { TaskState } from '../../protocol/units.ts'
import type { Decision } from '../../controller/model/decision.ts'
import {
  MAX_EPOCH_RECORDS,
  NO_HISTORY,
  StoreFault,
  type AuditQuery,
  noAccessChanges,
  type Batch,
  type DecisionQuery,
  type EventQuery,
  type FinishedQuery,
  type RecoveryRecord,
  type Store,
} from '../../controller/ports/store.ts'
import {
  aBatch,
  aConfig,
  aDecision,
  anAudit,
  aToken,
  auditQuery,
  aFinalTask,
  aNode,
  anEvent,
  aRunningTask,
  aTask,
  eventQuery,
  finishedQuery,
} from './store-builders.ts'

/** The place of a store; a second `open` finds the state that the previous store left there. */
export interface StorePlace {
  open(): Store
  /** While no store is open: puts the next one into recovery. */
  beginRecovery(recovery: RecoveryRecord): Promise<void>
  remove(): Promise<void>
}

const ALL_DECISIONS: DecisionQuery = {
  afterNumber: null,
  beforeNumber: null,
  taskId: null,
  nodeId: null,
  kind: null,
  limit: 100,
}

const seqs = (found: readonly { readonly seq: number }[]) => found.map((each) => each.seq)
const ids = (found: readonly { readonly id: string }[]) => found.map((each) => each.id)

export function storeContract(name: string, makePlace: () => StorePlace): void {
  describe(`${name} satisfies the contract of a store`, () => {
    let place: StorePlace
    let store: Store
    beforeEach(() => {
      place = makePlace()
      store = place.open()
    })
    afterEach(async () => {
      await store.close()
      await place.remove()
    })

    const put = async (changes: Partial<Batch>) => {
      await store.commit(aBatch(changes))
    }
    const reopen = async () => {
      await store.close()
      store = place.open()
    }

    it('is empty at first', async () => {
      expect(await store.load()).toEqual({
        openTasks: [],
        nodes: [],
        groups: [],
        config: null,
        tokens: [],
        secrets: [],
        lastAuditSeq: 0,
        submissionKeys: [],
        marks: { epoch: 0, nextTaskSeq: 1, nextEventSeq: 1, nextDecision: 1 },
        ...NO_HISTORY,
        finishedCounts: { completed: 0, failed: 0, cancelled: 0, lost: 0 },
      })
      expect(await store.reads.task('task-1')).toBeNull()
      expect(await store.reads.finishedTasks(finishedQuery())).toEqual([])
      expect(await store.reads.events(eventQuery())).toEqual([])
      expect(await store.reads.configRevisions({ before: null, limit: 10 })).toEqual([])
    })

    it('returns every field, also after it was closed and opened again', async () => {
      const tasks = [
        aTask({ seq: 1, owner: null, command: null, maxRuntimeMs: null }),
        aRunningTask({ seq: 2 }),
      ]
      const groups = [{ id: 'a100', description: 'the "old" ones', nodeIds: ['node-1', 'node-2'] }]
      const marks = { epoch: 7, nextTaskSeq: 3, nextEventSeq: 2, nextDecision: 18 }
      const event = anEvent(1, { taskId: 'task-1', nodeId: 'node-1', causedBy: 0, by: 'alice' })
      await put({ tasks, nodes: [aNode()], groups, config: aConfig(1), events: [event], marks })
      for (const step of ['at once', 'reopened']) {
        if (step === 'reopened') await reopen()
        expect(await store.load(), step).toEqual({
          openTasks: tasks,
          nodes: [aNode()],
          groups,
          config: aConfig(1),
          tokens: [],
          secrets: [],
          lastAuditSeq: 0,
          submissionKeys: [],
          marks,
          mark: { epoch: 7, eventSeq: 1, chain: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown },
          recovery: null,
          epochs: [{ epoch: 7, firstEventSeq: 1 }],
          finishedCounts: { completed: 0, failed: 0, cancelled: 0, lost: 0 },
        })
        expect(await store.reads.events(eventQuery()), step).toEqual([event])
        expect(await store.reads.task('task-2'), step).toEqual(tasks[1])
      }
    })

    it('keeps its mark, and its epochs with their first events', async () => {
      const marks = (epoch: number, nextEventSeq: number) => ({
        epoch,
        nextTaskSeq: 1,
        nextEventSeq,
        nextDecision: 1,
      })
      await put({ marks: marks(1, 1) })
      await put({ events: [anEvent(1), anEvent(2)], marks: marks(1, 3) })
      await put({ marks: marks(4, 3) })
      await put({ events: [anEvent(3)], marks: marks(4, 4) })
      for (const step of ['at once', 'reopened']) {
        if (step === 'reopened') await reopen()
        const { mark, epochs } = await store.load()
        expect(mark, step).toMatchObject({ epoch: 4, eventSeq: 3 })
        expect(epochs, step).toEqual([
          { epoch: 1, firstEventSeq: 1 },
          { epoch: 4, firstEventSeq: 3 },
        ])
      }
    })

    it('keeps only the newest epochs', async () => {
      const last = MAX_EPOCH_RECORDS + 2
      for (let epoch = 1; epoch < last; epoch++) {
        void store.commit(aBatch({ marks: { epoch, nextTaskSeq: 1, nextEventSeq: 1, nextDecision: 1 } }))
      }
      await put({ marks: { epoch: last, nextTaskSeq: 1, nextEventSeq: 1, nextDecision: 1 } })
      const { epochs } = await store.load()
      expect(epochs).toHaveLength(MAX_EPOCH_RECORDS)
      expect(epochs[0]).toEqual({ epoch: 3, firstEventSeq: 1 })
      expect(epochs.at(-1)).toEqual({ epoch: last, firstEventSeq: 1 })
    })

    it('is in recovery until a batch ends it', async () => {
      await store.close()
      await place.beginRecovery({ reason: 'restored', sinceWallMs: 1_760_000_000_000 })
      store = place.open()
      await put({ tasks: [aTask()] })
      await reopen()
      expect((await store.load()).recovery).toEqual({ reason: 'restored', sinceWallMs: 1_760_000_000_000 })
      await put({ endsRecovery: true })
      expect((await store.load()).recovery).toBeNull()
      await reopen()
      expect((await store.load()).recovery).toBeNull()
    })

    it('replaces a record with the same id', async () => {
      const groups = (nodeIds: string[]) => [{ id: 'g', description: '', nodeIds }]
      await put({
        tasks: [aTask(), aTask({ seq: 2 })],
        nodes: [aNode()],
        groups: groups(['a']),
        config: aConfig(1),
      })
      const changed = aRunningTask({ name: 'renamed', owner: 'bob' })
      const config = { ...aConfig(1), author: 'other' }
      await put({
        tasks: [changed],
        nodes: [aNode({ isCordoned: true, ordinal: 9 })],
        groups: groups([]),
        config,
      })
      const state = await store.load()
      expect(state.openTasks).toEqual([changed, aTask({ seq: 2 })])
      expect(state.nodes).toEqual([aNode({ isCordoned: true, ordinal: 9 })])
      expect(state.groups).toEqual(groups([]))
      expect(state.config).toEqual(config)
    })

    it('loads tasks by submission, nodes by ordinal and id, groups by name', async () => {
      await put({
        tasks: [3, 1].map((seq) => aTask({ seq })),
        nodes: [
          aNode({ id: 'z', ordinal: 2 }),
          aNode({ id: 'b', ordinal: 1 }),
          aNode({ id: 'a', ordinal: 2 }),
        ],
        groups: ['é', 'Z', 'a'].map((id) => ({ id, description: '', nodeIds: [] })),
      })
      await put({ tasks: [aTask({ seq: 2 }), aRunningTask({ seq: 3 })] })
      const state = await store.load()
      expect(seqs(state.openTasks)).toEqual([1, 2, 3])
      expect(ids(state.nodes)).toEqual(['b', 'a', 'z'])
      expect(ids(state.groups)).toEqual(['Z', 'a', 'é'])
    })

    it('does not load final tasks, but counts them and finds them by id', async () => {
      await put({ tasks: [1, 2, 3, 4, 5].map((seq) => aTask({ seq })) })
      const ends: TaskState[] = ['completed', 'failed', 'cancelled', 'lost']
      await put({ tasks: ends.map((state, index) => aFinalTask({ seq: index + 1, state })) })
      await put({ tasks: [aFinalTask({ seq: 6, endReason: 'submitted and finished in one batch' })] })
      await reopen()
      const state = await store.load()
      expect(seqs(state.openTasks)).toEqual([5])
      expect(state.finishedCounts).toEqual({ completed: 2, failed: 1, cancelled: 1, lost: 1 })
      expect((await store.reads.task('task-6'))?.endReason).toBe('submitted and finished in one batch')
      expect((await store.reads.task('task-5'))?.state).toBe('pending')
    })

    it('removes nodes and groups, unless the same batch adds them again', async () => {
      const groups = ['g', 'h'].map((id) => ({ id, description: '', nodeIds: [] }))
      await put({ nodes: [aNode({ id: 'a' }), aNode({ id: 'b' })], groups })
      const back = { nodes: [aNode({ id: 'b', bootCounter: 5 })], groups: groups.slice(1) }
      await put({
        forgottenNodeIds: ['a', 'b', 'never seen'],
        deletedGroupIds: ['g', 'h', 'never made'],
        ...back,
      })
      const state = await store.load()
      expect(state.nodes).toEqual(back.nodes)
      expect(state.groups).toEqual(back.groups)
    })

    it('loads the highest revision of the configuration, and lists the newest first', async () => {
      for (const revision of [1, 3, 2]) await put({ config: aConfig(revision) })
      await put({})
      expect((await store.load()).config).toEqual(aConfig(3))
      expect(await store.reads.configRevisions({ before: null, limit: 2 })).toEqual([aConfig(3), aConfig(2)])
      expect(await store.reads.configRevisions({ before: 3, limit: 2 })).toEqual([aConfig(2), aConfig(1)])
      expect(await store.reads.configRevisions({ before: 1, limit: 2 })).toEqual([])
    })

    it('keeps the marks of the last batch', async () => {
      await put({ marks: { epoch: 1, nextTaskSeq: 5, nextEventSeq: 6, nextDecision: 7 } })
      await put({ marks: { epoch: 2, nextTaskSeq: 8, nextEventSeq: 9, nextDecision: 10 } })
      await reopen()
      expect((await store.load()).marks).toEqual({
        epoch: 2,
        nextTaskSeq: 8,
        nextEventSeq: 9,
        nextDecision: 10,
      })
    })

    it('refuses the batch of an earlier epoch, and stores no part of it', async () => {
      await put({ tasks: [aTask()], marks: { epoch: 5, nextTaskSeq: 2, nextEventSeq: 1, nextDecision: 1 } })
      const before = await store.load()
      const late = aBatch({
        tasks: [aRunningTask(), aTask({ seq: 2 })],
        nodes: [aNode()],
        config: aConfig(1),
        events: [anEvent(1)],
        marks: { epoch: 4, nextTaskSeq: 9, nextEventSeq: 9, nextDecision: 9 },
      })
      await expect(store.commit(late)).rejects.toThrow(StoreFault)
      await expect(store.commit(late)).rejects.toThrow(/epoch/)
      await reopen()
      expect(await store.load()).toEqual(before)
      expect(await store.reads.events(eventQuery())).toEqual([])
      await put({
        tasks: [aTask({ seq: 2 })],
        marks: { epoch: 6, nextTaskSeq: 3, nextEventSeq: 1, nextDecision: 1 },
      })
      expect(seqs((await store.load()).openTasks)).toEqual([1, 2])
    })

    it('makes batches durable in the order of the calls, also without waiting in between', async () => {
      const commits: Promise<void>[] = []
      const done: number[] = []
      for (let step = 1; step <= 300; step++) {
        const commit = store.commit(aBatch({ tasks: [aTask({ swapOuts: step })], events: [anEvent(step)] }))
        commits.push(Promise.resolve(commit).then(() => void done.push(step)))
      }
      await Promise.all(commits)
      expect(done).toEqual([...Array(300).keys()].map((index) => index + 1))
      expect((await store.load()).openTasks).toEqual([aTask({ swapOuts: 300 })])
      expect(seqs(await store.reads.events(eventQuery({ limit: 1000 })))).toEqual(
        [...Array(300).keys()].map((index) => index + 1),
      )
    })

    describe('pages of final tasks', () => {
      beforeEach(async () => {
        const states: TaskState[] = ['completed', 'failed', 'lost']
        const finals = Array.from({ length: 12 }, (_, index) =>
          aFinalTask({
            seq: index + 1,
            state: states[index % 3] ?? 'lost',
            owner: index < 6 ? 'alice' : 'bob',
            name: index % 2 === 0 ? `Fit%_${index}` : `eval ${index}`,
          }),
        )
        await put({ tasks: [...finals, aTask({ seq: 13 }), aRunningTask({ seq: 14 })] })
      })

      const page = async (changes: Partial<FinishedQuery>) =>
        seqs(await store.reads.finishedTasks(finishedQuery(changes)))

      it('have the newest tasks of the wanted states, never an open one', async () => {
        expect(await page({})).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1])
        expect(await page({ states: ['failed'] })).toEqual([11, 8, 5, 2])
        expect(await page({ states: ['lost', 'failed', 'lost'] })).toEqual([12, 11, 9, 8, 6, 5, 3, 2])
        expect(await page({ states: ['pending', 'running', 'cancelled'] })).toEqual([])
        expect(await page({ states: [] })).toEqual([])
      })

      it('continue below a submission number, without repeating it', async () => {
        expect(await page({ limit: 5 })).toEqual([12, 11, 10, 9, 8])
        expect(await page({ limit: 5, beforeSeq: 8 })).toEqual([7, 6, 5, 4, 3])
        expect(await page({ limit: 5, beforeSeq: 3 })).toEqual([2, 1])
        expect(await page({ limit: 5, beforeSeq: 1 })).toEqual([])
      })

      it('can be of one owner, and of names that contain a text or ids that begin with it', async () => {
        expect(await page({ owner: 'bob', states: ['completed'] })).toEqual([10, 7])
        expect(await page({ nameContains: 'Fit%_' })).toEqual([11, 9, 7, 5, 3, 1])
        expect(await page({ nameContains: 'fit' })).toEqual([])
        expect(await page({ nameContains: aTask({ seq: 5 }).id })).toEqual([5])
        expect(await page({ nameContains: 'task-1' })).toEqual([12, 11, 10, 1])
        expect(await page({ nameContains: 'tas' })).toEqual([])
        expect(await page({ nameContains: 'eval', owner: 'alice', beforeSeq: 6, limit: 1 })).toEqual([4])
        expect(await page({ owner: 'absent' })).toEqual([])
      })

      it('can have the oldest first, and continue above a submission number', async () => {
        expect(await page({ isOldestFirst: true, limit: 4 })).toEqual([1, 2, 3, 4])
        expect(await page({ isOldestFirst: true, afterSeq: 4, states: ['failed'] })).toEqual([5, 8, 11])
        expect(await page({ isOldestFirst: true, afterSeq: 12 })).toEqual([])
      })

      it('can be of one node, the node of the last attempt', async () => {
        const onNode = (seq: number, lastNodeId: string | null) => aFinalTask({ seq, lastNodeId })
        await put({
          tasks: [
            onNode(20, 'a'),
            onNode(21, 'b'),
            onNode(22, 'a'),
            aRunningTask({ seq: 23, lastNodeId: 'node-1' }),
          ],
        })
        expect(await page({ nodeId: 'a' })).toEqual([22, 20])
        expect(await page({ nodeId: 'a', beforeSeq: 22, owner: 'alice' })).toEqual([20])
        expect(await page({ nodeId: 'node-1' })).toEqual([])
      })

      it('contain complete records', async () => {
        const [newest] = await store.reads.finishedTasks(finishedQuery({ limit: 1 }))
        expect(newest).toEqual(aFinalTask({ seq: 12, state: 'lost', owner: 'bob', name: 'eval 11' }))
      })
    })

    it('keeps secrets by owner and name until they are deleted', async () => {
      const secret = { owner: 'alice', name: 'KEY', sealed: 'x', updatedAt: 1 }
      const secrets = [secret, { ...secret, owner: null }, { ...secret, name: 'ANOTHER' }]
      await put({ access: { ...noAccessChanges(), secrets } })
      const again = { ...secret, sealed: 'y', updatedAt: 2 }
      const deletedSecrets = [{ owner: null, name: 'KEY' }]
      await put({ access: { ...noAccessChanges(), secrets: [again], deletedSecrets } })
      expect((await store.load()).secrets).toEqual([secrets[2], again])
    })

    it('keeps tokens until they are revoked, in order of creation', async () => {
      const [first, second, third] = [
        aToken({ id: 'z', createdAt: 1 }),
        aToken({ id: 'b', createdAt: 2 }),
        aToken({ id: 'a', createdAt: 2 }),
      ]
      await put({ access: { ...noAccessChanges(), tokens: [second, third, first], revokedTokenIds: [] } })
      await put({})
      await reopen()
      expect((await store.load()).tokens).toEqual([first, third, second])
      const used = { ...second, lastUsedAt: 1_760_000_000_000 }
      await put({ access: { ...noAccessChanges(), tokens: [used], revokedTokenIds: ['z', 'never made'] } })
      await reopen()
      expect((await store.load()).tokens).toEqual([third, used])
    })

    it('finds audit entries by every filter, newest first, and replaces earlier ones', async () => {
      const audits = [1, 2, 3, 4, 5, 6].map((seq) =>
        anAudit({
          seq,
          at: seq * 1000,
          actor: seq % 2 === 0 ? 'alice' : null,
          action: seq % 3 === 0 ? 'putConfig' : 'submitTask',
          target: `PUT /api/v1/tasks/t-${seq}`,
        }),
      )
      await put({ access: { ...noAccessChanges(), audits } })
      const amended = anAudit({ ...audits[4], outcome: 'refused', status: 409, code: 'conflict' })
      await put({ access: { ...noAccessChanges(), audits: [amended] } })
      const found = async (changes: Partial<AuditQuery>) =>
        seqs(await store.reads.audits(auditQuery(changes)))
      expect(await found({})).toEqual([6, 5, 4, 3, 2, 1])
      expect(await store.reads.audits(auditQuery({ outcome: 'refused' }))).toEqual([amended])
      expect(await found({ beforeSeq: 5, limit: 2 })).toEqual([4, 3])
      expect(await found({ actor: 'alice', action: 'submitTask' })).toEqual([4, 2])
      expect(await found({ targetContains: '/t-3' })).toEqual([3])
      expect(await found({ since: 2000, until: 4000 })).toEqual([3, 2])
    })

    it('keeps submission keys with their tasks, from a given number', async () => {
      const key = (seq: number) => ({ seq, key: `k${seq}`, body: `b${seq}`, taskId: `task-${seq}`, at: seq })
      await put({ tasks: [aTask()], submissionKeys: { added: [1, 2, 3].map(key), keptFromSeq: 1 } })
      await put({})
      await put({ submissionKeys: { added: [key(7)], keptFromSeq: 3 } })
      await reopen()
      expect((await store.load()).submissionKeys).toEqual([key(3), key(7)])
    })

    it('finds events by position, task and node, oldest first', async () => {
      const about = (seq: number) => ({
        taskId: seq % 2 === 0 ? 'even' : null,
        nodeId: seq % 3 === 0 ? 'third' : 'other',
      })
      await put({ events: [1, 2, 3, 4, 5, 6].map((seq) => anEvent(seq, about(seq))) })
      await put({ events: [7, 8, 9, 10, 11, 12].map((seq) => anEvent(seq, about(seq))) })
      const found = async (changes: Partial<EventQuery>) =>
        seqs(await store.reads.events(eventQuery(changes)))
      expect(await found({ afterSeq: 4, limit: 3 })).toEqual([5, 6, 7])
      expect(await found({ taskId: 'even' })).toEqual([2, 4, 6, 8, 10, 12])
      expect(await found({ nodeId: 'third', afterSeq: 3 })).toEqual([6, 9, 12])
      expect(await found({ taskId: 'even', nodeId: 'third', limit: 1 })).toEqual([6])
      expect(await found({ taskId: 'unknown' })).toEqual([])
      expect(await found({ afterSeq: 12 })).toEqual([])
    })

    it('finds events by kind and time, and newest first', async () => {
      const kinds = ['task_placed', 'task_started', 'config_changed'] as const
      const about = (seq: number) => ({
        kind: kinds[seq % 3] ?? 'task_placed',
        nodeId: seq % 2 === 0 ? 'even' : null,
        at: 1000 + 10 * seq,
      })
      await put({ events: Array.from({ length: 12 }, (_, index) => anEvent(index + 1, about(index + 1))) })
      const found = async (changes: Partial<EventQuery>) =>
        seqs(await store.reads.events(eventQuery(changes)))
      expect(await found({ kinds: ['config_changed'] })).toEqual([2, 5, 8, 11])
      expect(
        await found({ kinds: ['config_changed', 'task_placed', 'config_changed'], limit: 3, afterSeq: 2 }),
      ).toEqual([3, 5, 6])
      expect(await found({ kinds: ['task_started', 'task_placed'], nodeId: 'even' })).toEqual([4, 6, 10, 12])
      expect(await found({ kinds: [] })).toEqual([])
      expect(await found({ isNewestFirst: true, limit: 2 })).toEqual([12, 11])
      expect(
        await found({
          isNewestFirst: true,
          beforeSeq: 9,
          kinds: ['config_changed', 'task_started'],
          limit: 3,
        }),
      ).toEqual([8, 7, 5])
      expect(await found({ fromAt: 1030, untilAt: 1060 })).toEqual([3, 4, 5])
      expect(await found({ fromAt: 1031 })).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12])
      expect(await found({ untilAt: 1031, afterSeq: 1, beforeSeq: 3 })).toEqual([2])
      expect(await found({ fromAt: 1121 })).toEqual([])
      expect(await found({ untilAt: 1 })).toEqual([])
    })

    it('returns the range of existing events', async () => {
      expect(await store.reads.eventRange()).toEqual({ firstSeq: 1, lastSeq: 0 })
      await put({ events: [1, 2, 3].map((seq) => anEvent(seq)) })
      expect(await store.reads.eventRange()).toEqual({ firstSeq: 1, lastSeq: 3 })
    })

    it('finds decisions by number, task, victim, node and kind, in both directions', async () => {
      const about = (number: number): Partial<Decision> => ({
        taskId: number % 2 === 0 ? 'even' : 'odd',
        nodeId: number % 3 === 0 ? 'third' : 'other',
        ...(number === 5 ? { kind: 'swap_out', victimIds: ['even', 'leaves'] } : {}),
      })
      await put({ decisions: [1, 2, 3].map((number) => aDecision(number, about(number))) })
      await put({ decisions: [4, 5, 6].map((number) => aDecision(number, about(number))) })
      const found = async (changes: Partial<DecisionQuery>) =>
        (await store.reads.decisions({ ...ALL_DECISIONS, ...changes })).map(({ number }) => number)
      expect(await found({})).toEqual([6, 5, 4, 3, 2, 1])
      expect(await found({ beforeNumber: 5, limit: 2 })).toEqual([4, 3])
      expect(await found({ afterNumber: 2, limit: 2 })).toEqual([3, 4])
      expect(await found({ taskId: 'even' })).toEqual([6, 5, 4, 2])
      expect(await found({ taskId: 'leaves', nodeId: 'other', kind: 'swap_out' })).toEqual([5])
      expect(await found({ taskId: 'even', afterNumber: 4 })).toEqual([5, 6])
      expect(await found({ nodeId: 'third', beforeNumber: 6 })).toEqual([3])
      expect(await found({ nodeId: 'third', kind: 'placement' })).toEqual([6, 3])
      expect(await found({ kind: 'swap_out' })).toEqual([5])
      expect(await found({ kind: 'placement', afterNumber: 3 })).toEqual([4, 6])
      expect(await found({ taskId: 'unknown' })).toEqual([])
      expect(await store.reads.decision(5)).toEqual(aDecision(5, about(5)))
      expect(await store.reads.decision(7)).toBeNull()
    })

    it('keeps the newest decisions, also over a restart', async () => {
      const numbers = async (taskId: string | null) =>
        (await store.reads.decisions({ ...ALL_DECISIONS, taskId })).map(({ number }) => number).toReversed()
      await put({ decisions: [1, 2, 3, 4, 5, 6].map((number) => aDecision(10 * number, { taskId: 't' })) })
      await reopen()
      await put({ decisions: [7, 8, 9, 10].map((number) => aDecision(10 * number)) })
      expect(await numbers(null)).toEqual([30, 40, 50, 60, 70, 80, 90, 100])
      expect(await numbers('t')).toEqual([30, 40, 50, 60])
      expect(await store.reads.decision(20)).toBeNull()
    })
  })
}
