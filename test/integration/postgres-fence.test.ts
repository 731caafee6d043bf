/** Only the holder of the fence commits to a PostgreSQL store, and every part of the check is needed. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CLAIM, commitFunction, FENCE } from '../../controller/adapters/postgres/commit-function.ts'
import { faultOf } from '../../controller/adapters/postgres/faults.ts'
import { fileFunctions } from '../../controller/adapters/postgres/files-schema.ts'
import {
  beatFunction,
  deposeFunction,
  LEAD,
  resignFunction,
  serveFunction,
  SIGN,
  STILL_SILENT,
  TERM_FENCE,
} from '../../controller/adapters/postgres/lease-schema.ts'
import { requireOwnSessions } from '../../controller/adapters/postgres/session.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { aBatch, aTask, anEvent } from '../support/store-builders.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'

describe.skipIf(whyNoPostgres() !== null)('the fence of a PostgreSQL store', () => {
  let server: PostgresServer
  const dataDir = mkdtempSync(join(tmpdir(), 'headroom-store-'))
  const markBase = join(dataDir, 'postgres')
  const clients: pg.Client[] = []
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
  })
  beforeEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()))
    await server.clear()
    rmSync(`${markBase}.mark`, { force: true })
    const store = createPostgresStore({ place: server.place, markBase })
    await store.load()
    await store.close()
  })
  afterAll(async () => {
    await Promise.all(clients.splice(0).map((client) => client.end()))
    rmSync(dataDir, { recursive: true })
  })

  async function session(name = 'headroom writer'): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: server.url, application_name: name })
    client.on('error', () => {})
    await client.connect()
    clients.push(client)
    return client
  }

  /** A commit of the holder `a`, epoch 1, while another session takes over and has not committed. */
  async function commitDuring(takeover: string, fence = FENCE): Promise<'fenced' | 'written'> {
    await server.query(commitFunction(fence))
    await server.query("update headroom.leader set holder = 'a', epoch = 1")
    const [a, b] = [await session(), await session()]
    await b.query('begin')
    await b.query(takeover)
    const json = JSON.stringify({ marks: [1, 1, 1, 1] })
    const outcome = a.query("select headroom.commit_batch(1, 'a', 0, $1)", [json]).then(
      () => 'written' as const,
      (error: Error & { readonly code?: string }) => {
        if (error.code === 'HR001') return 'fenced' as const
        throw error
      },
    )
    // Either it waits for the row, or it has gone past the check.
    let isDone = false
    void outcome.finally(() => (isDone = true))
    await expect.poll(async () => isDone || (await isWaiting())).toBe(true)
    await b.query('commit')
    return outcome
  }

  async function isWaiting(): Promise<boolean> {
    const rows = await server.query(
      `select 1 from pg_stat_activity
       where wait_event_type = 'Lock' and application_name = 'headroom writer'`,
    )
    return rows.length > 0
  }

  const HOLDER = "update headroom.leader set holder = 'b'"
  const EPOCH = 'update headroom.leader set epoch = 2'

  it.each([
    ['another holder', HOLDER],
    ['a later epoch', EPOCH],
  ])('refuses a commit when %s is committed between its check and its write', async (_, takeover) => {
    expect(await commitDuring(takeover)).toBe('fenced')
    expect(await server.query('select 1 from headroom.commit_log')).toEqual([])
  })

  it.each([
    ['the whole check', FENCE, '', HOLDER],
    ['the row lock', ' for no key update', '', HOLDER],
    ['the holder', 'v_leader.holder is distinct from p_holder or ', '', HOLDER],
    ['the epoch', ' or p_epoch < v_leader.epoch', '', EPOCH],
  ])('is needed: without %s an earlier holder writes', async (_, part, instead, takeover) => {
    const mutant = FENCE.replace(part, instead)
    expect(mutant).not.toBe(FENCE)
    expect(await commitDuring(takeover, mutant)).toBe('written')
  })

  const PUT = "select headroom.put_file('a', 'null', 'x', 0, '')"
  const REMOVE = "select headroom.remove_files('a', 'null', '{kept}')"

  const SERVE = "select headroom.serve_at('a', 'http://a', '')"

  /** A change of uploaded files by the holder `a`, while another session takes over and has not committed. */
  async function changeDuring(change: string, fence = TERM_FENCE): Promise<readonly unknown[]> {
    const functions = [serveFunction(fence), resignFunction(fence), beatFunction(fence)]
    for (const text of [...fileFunctions(fence), ...functions]) await server.query(text)
    await server.query("update headroom.leader set holder = 'a'")
    await server.query("insert into headroom.uploaded_files values ('null', 'kept', 0, 0, '')")
    const [a, b] = [await session(), await session()]
    await b.query('begin')
    await b.query('select 1 from headroom.leader for update')
    await b.query(HOLDER)
    let isDone = false
    const changed = a.query(change).catch((error: Error & { readonly code?: string }) => {
      if (error.code !== 'HR001') throw error
    })
    void changed.finally(() => (isDone = true))
    await expect.poll(async () => isDone || (await isWaiting())).toBe(true)
    await b.query('commit')
    await changed
    const rows = await server.query<{ sha256: string }>(
      'select sha256 from headroom.uploaded_files order by 1',
    )
    return rows.map(({ sha256 }) => sha256)
  }

  it('refuses changes of uploaded files that another holder has overtaken', async () => {
    expect(await changeDuring(PUT)).toEqual(['kept'])
    await server.query('truncate headroom.uploaded_files')
    expect(await changeDuring(REMOVE)).toEqual(['kept'])
  })

  it.each([
    ['the whole check', TERM_FENCE, REMOVE, []],
    ['the row lock', ' for key share', REMOVE, []],
    ['the holder', ' and holder = p_holder', PUT, ['kept', 'x']],
  ])(
    'is needed for uploaded files: without %s an earlier holder changes them',
    async (_, part, change, now) => {
      const mutant = TERM_FENCE.replace(part, '')
      expect(mutant).not.toBe(TERM_FENCE)
      expect(await changeDuring(change, mutant)).toEqual(now)
    },
  )

  it.each([
    ['is refused', TERM_FENCE, ''],
    ['would be taken without the check', '', 'http://a'],
    ['would be taken without the row lock', TERM_FENCE.replace(' for key share', ''), 'http://a'],
  ])('The address of a leader that another holder has overtaken %s', async (_, fence, url) => {
    await changeDuring(SERVE, fence)
    expect(await server.query('select url from headroom.lease')).toEqual([{ url }])
  })

  it.each([
    ['is refused', TERM_FENCE, 'b'],
    ['would take the fence of the next one without the check', '', ''],
    ['would take it without the row lock', TERM_FENCE.replace(' for key share', ''), ''],
    ['would take it without the holder', TERM_FENCE.replace(' and holder = p_holder', ''), ''],
  ])('The resignation of a leader that another holder has overtaken %s', async (_, fence, holder) => {
    await changeDuring("select headroom.resign('a', null)", fence)
    expect(await server.query('select holder from headroom.leader')).toEqual([{ holder }])
  })

  it.each([
    ['is refused', TERM_FENCE, '0'],
    ['would be a sign of life of the next one without the check', '', '1'],
    ['would be one without the row lock', TERM_FENCE.replace(' for key share', ''), '1'],
    ['would be one without the holder', TERM_FENCE.replace(' and holder = p_holder', ''), '1'],
  ])('The beat of a leader that another holder has overtaken %s', async (_, fence, beat) => {
    await server.query('update headroom.lease set beat = 0')
    await changeDuring("select headroom.beat('a')", fence)
    expect(await server.query('select beat::text from headroom.lease')).toEqual([{ beat }])
  })

  /** @returns true: the leader that has done something since it was observed still has its session */
  async function keepsSessionAfter(sign: string, condition = STILL_SILENT): Promise<boolean> {
    await server.query(deposeFunction(condition))
    const [a, b] = [await session(), await session()]
    await a.query("select headroom.claim('a')")
    const { rows } = await b.query<{ sign: string }>('select headroom.sign_of_life() as sign')
    await server.query(sign)
    await b.query('select headroom.depose($1)', [rows[0]?.sign])
    return a.query('select 1').then(
      () => true,
      () => false,
    )
  }

  const BEATEN = 'update headroom.lease set beat = beat + 1'
  const COMMITTED = 'update headroom.history set commits = commits + 1'

  it.each([
    ['has beaten', 'beat', BEATEN],
    ['has committed', 'commits, ', COMMITTED],
    ['began a term', 'epoch, ', EPOCH],
    ['is another one', 'holder, ', HOLDER],
  ])(
    'A leader that %s since it was observed is not deposed, and would be without `%s`',
    async (_, part, sign) => {
      expect(await keepsSessionAfter(sign)).toBe(true)
      const mutant = SIGN.replace(part === 'beat' ? `, ${part}` : part, '')
      expect(mutant).not.toBe(SIGN)
      await server.query(mutant)
      expect(await keepsSessionAfter(sign)).toBe(false)
    },
  )

  it('A leader that gave a sign of life would be deposed without the check', async () => {
    expect(await keepsSessionAfter(BEATEN, 'true')).toBe(false)
  })

  it.each(['depose', 'claim'] as const)(
    '%s ends a session to which a pooler has added a host',
    async (how) => {
      const [a, b] = [await session('headroom writer - 10.0.0.1:5432'), await session()]
      await a.query("select headroom.claim('a')")
      const sign = how === 'depose' ? 'headroom.sign_of_life()' : "'b'"
      await b.query(`select headroom.${how}(${sign})`)
      await expect(a.query('select 1')).rejects.toThrow()
    },
  )

  /** Takes the fence while its holder has changed a file and not committed. */
  async function claimsDuringChange(claim = CLAIM): Promise<'after it' | 'before it'> {
    await server.query(claim)
    const [a, c] = [await session(), await session()]
    await server.query("update headroom.leader set holder = 'a', epoch = 1")
    await a.query('begin')
    await a.query(PUT)
    const json = JSON.stringify({ marks: [1, 1, 1, 1] })
    // A commit does not wait for it.
    await (await session()).query("select headroom.commit_batch(1, 'a', 0, $1)", [json])
    let isTaken = false
    const taken = c.query("select headroom.claim('c')").then(() => (isTaken = true))
    await expect.poll(async () => isTaken || (await isWaiting())).toBe(true)
    const outcome = isTaken ? 'before it' : 'after it'
    await a.query('commit')
    await taken
    return outcome
  }

  it('lets commits continue while a file is written, and a takeover wait for it', async () => {
    expect(await claimsDuringChange()).toBe('after it')
    await server.query('truncate headroom.uploaded_files')
    const mutant = CLAIM.replace(' perform 1 from leader where id = 1 for update;', '')
    expect(mutant).not.toBe(CLAIM)
    expect(await claimsDuringChange(mutant)).toBe('before it')
  })

  async function endsSession(claim = CLAIM): Promise<boolean> {
    await server.query(claim)
    const [a, b] = [await session(), await session()]
    await a.query("select headroom.claim('a')")
    await b.query("select headroom.claim('b')")
    expect(await server.query('select holder from headroom.leader')).toEqual([{ holder: 'b' }])
    return a.query('select 1').then(
      () => false,
      () => true,
    )
  }

  it('ends the sessions of the previous holder when another takes it', async () => {
    expect(await endsSession()).toBe(true)
    expect(await endsSession(CLAIM.replace('activity.pid = any(leader.sessions)', 'false'))).toBe(false)
    expect(await endsSession(CLAIM.replace('array[pg_backend_pid()]', "'{}'"))).toBe(false)
  })

  /** Two terms, after commits of epoch 7. @returns their epochs, and the holder */
  async function terms(lead = LEAD, claim = CLAIM): Promise<readonly unknown[]> {
    for (const text of [claim, lead]) await server.query(text)
    await server.query("update headroom.leader set holder = '', epoch = 1, sessions = '{}'")
    await server.query('insert into headroom.marks values (1, 7, 1, 1, 1) on conflict do nothing')
    const epochs: number[] = []
    for (const holder of ['a', 'b']) {
      const client = await session()
      const { rows } = await client.query<{ epoch: string }>('select headroom.lead($1, $1, $1) as epoch', [
        holder,
      ])
      epochs.push(Number(rows[0]?.epoch))
    }
    const [row] = await server.query<{ holder: string }>('select holder from headroom.leader')
    return [...epochs, row?.holder]
  }

  it.each([
    ['raises the epoch above those of all commits', LEAD, CLAIM, [8, 9, 'b']],
    ['would have the epoch of the one before', LEAD.replace('epoch + 1', 'epoch'), CLAIM, [7, 7, 'b']],
    ['would have no fence', LEAD.replace('perform claim(p_holder);', ''), CLAIM, [2, 3, '']],
    [
      'would have an epoch of earlier commits',
      LEAD,
      CLAIM.replace('greatest(epoch, coalesce((select marks.epoch from marks), 0))', 'epoch'),
      [2, 3, 'b'],
    ],
  ])('A new term %s', async (_, lead, claim, expected) => {
    expect(await terms(lead, claim)).toEqual(expected)
  })

  it('admits one controller at a time, and names the address of the other one', async () => {
    const first = createPostgresStore({ place: server.place, markBase })
    await first.load()
    const second = createPostgresStore({ place: server.place, markBase, lockWaitMs: 0 })
    await expect(second.load()).rejects.toThrow(
      /in use by another controller \(connected from 127\.0\.0\.1\)/,
    )
    await first.commit(aBatch({ tasks: [aTask()] }))
    await Promise.all([first.close(), second.close()])
    const third = createPostgresStore({ place: server.place, markBase })
    expect((await third.load()).openTasks).toHaveLength(1)
    await third.close()
  })

  it('reports a lost connection at once, and then refuses every commit', async () => {
    const lost: string[] = []
    const onLost = (fault: Error) => void lost.push(fault.message)
    const store = createPostgresStore({ place: server.place, markBase, onLost })
    await store.load()
    await store.commit(aBatch({ events: [anEvent(1)] }))
    await server.query('select pg_terminate_backend(unnest(sessions)) from headroom.leader')
    await expect.poll(() => lost).toEqual([expect.stringContaining('cannot be reached') as string])
    await expect(store.commit(aBatch({ events: [anEvent(2)] }))).rejects.toThrow('cannot be reached')
    expect(await store.reads.eventRange()).toEqual({ firstSeq: 1, lastSeq: 1 })
    await store.close()
  })

  it('is not entrusted to a pooler that shares sessions', async () => {
    const [a, b] = [await session(), await session()]
    await requireOwnSessions(a, b)
    await expect(requireOwnSessions(a, a)).rejects.toThrow(/pool_mode = session/)
  })

  it('has no password in its faults', () => {
    expect(faultOf(new Error('x'), 'postgres://h/db').message).toBe('postgres://h/db failed (x)')
  })
})
