/**
 * A commit that a leader has sent when it is stopped, and that PostgreSQL receives after the takeover. A
 * takeover ends the sessions of the leader; here its session loses the lock of the store instead, and is not
 * ended, so that only the fence is left to refuse the commit.
 */
import { expect } from 'vitest'
import { commitFunction, FENCE } from '../../controller/adapters/postgres/commit-function.ts'
import { WAIT } from '../support/wait.ts'
import type { LeaseRow, Pair, Running } from './pair.ts'

/**
 * Stops the leader when it has sent the commit of a submission, which its proxy holds until it is healed.
 * @param name of the submitted task; no other one has it
 * @returns checks, once the proxy is healed and the process continues, that PostgreSQL has refused the commit
 * for its epoch, that nothing of it is stored, and that its client has no acknowledgement
 */
export async function stopAtCommit(
  { name: leaderName, root, toDatabase, controller }: Running,
  { server }: Pair,
  name: string,
): Promise<(now: LeaseRow) => Promise<void>> {
  // The next commit of the leader gives the lock away. The standby takes it when the leader is silent.
  await server.query('update headroom.lease set heir = $1', [leaderName])
  await server.query("update headroom.leader set sessions = '{}'")
  await server.query(commitFunction(`${FENCE} perform pg_advisory_unlock_all();`))
  await expect.poll(() => server.query("select from pg_locks where locktype = 'advisory'"), WAIT).toEqual([])
  await server.query(commitFunction())
  const [leader] = await server.query<{ term: string }>(
    "select format('epoch %s of %s', epoch, holder) as term from headroom.leader",
  )
  const isHeld = toDatabase.onSent(name, WAIT.timeout, () => {
    toDatabase.cut(['to'])
    controller.member.signal('SIGSTOP')
  })
  const answered = submitted(root, name)
  expect(await isHeld).toBe(true)
  return async ({ epoch }) => {
    await expect.poll(() => server.output, WAIT).toContain(`fenced: ${leader?.term}, now ${epoch} of`)
    const commits = 'select from headroom.commit_log where batch::text like $1'
    expect(await server.query(commits, [`%${name}%`])).toEqual([])
    expect(await server.query('select from headroom.tasks where name = $1', [name])).toEqual([])
    expect([503, null]).toContain(await answered)
  }
}

/** @returns the status of the answer; null: none came */
function submitted(root: string, name: string): Promise<number | null> {
  const body = JSON.stringify({ name, vram_mib: 1_000 })
  const headers = { 'content-type': 'application/json' }
  return fetch(`${root}/api/v1/tasks`, { method: 'POST', headers, body }).then(
    ({ status }) => status,
    () => null,
  )
}
