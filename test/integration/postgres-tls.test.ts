/** Connections to PostgreSQL with TLS and a password, and what is said when they are refused. */
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { readStoreUrl } from '../../controller/adapters/postgres/store-url.ts'
import { makeCertificates } from '../support/certificates.ts'
import { PostgresServer, UNPRIVILEGED, whyNoPostgres } from '../support/postgres-server.ts'

describe.skipIf(whyNoPostgres() !== null)('a PostgreSQL server with TLS and passwords', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-tls-'))
  const pems = makeCertificates(folder, 'IP:127.0.0.1')
  const other = makeCertificates(mkdtempSync(join(folder, 'other-')), 'IP:127.0.0.1')
  let server: PostgresServer
  beforeAll(async () => {
    chmodSync(folder, 0o755)
    chmodSync(pems.serverKey, 0o600)
    if (process.geteuid?.() === 0) chownSync(pems.serverKey, UNPRIVILEGED, UNPRIVILEGED)
    const settings = ['ssl=on', `ssl_cert_file=${pems.serverCert}`, `ssl_key_file=${pems.serverKey}`]
    server = await PostgresServer.start({ fsync: false, settings })
    await server.query("create role ann login superuser password 'geheim'")
    // Only ann needs TLS and a password.
    const rules = ['hostnossl all ann 127.0.0.1/32 reject', 'hostssl all ann 127.0.0.1/32 scram-sha-256']
    const file = join(server.folder, 'data', 'pg_hba.conf')
    writeFileSync(file, `${rules.join('\n')}\nhost all all 127.0.0.1/32 trust\n`)
    await server.query('select pg_reload_conf()')
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  async function opened(user: string, query: string): Promise<string> {
    const place = readStoreUrl(`postgres://${user}@127.0.0.1:${server.port}/postgres?${query}`)
    if (place === undefined) throw new Error(`${query} cannot be read`)
    const store = createPostgresStore({ place, markBase: join(folder, 'postgres') })
    const outcome = await store.load().then(
      () => 'opened',
      (fault: Error) => fault.message,
    )
    await store.close()
    return outcome
  }

  it.each([
    ['verify-full', () => `sslmode=verify-full&sslrootcert=${pems.ca}`],
    ['verify-ca', () => `sslmode=verify-ca&sslrootcert=${pems.ca}`],
    ['require', () => 'sslmode=require'],
  ])('is used with sslmode %s', async (_, query) => {
    expect(await opened('ann:geheim', query())).toBe('opened')
  })

  it.each([
    ['an authority that has not signed its certificate', () => `sslrootcert=${other.ca}&sslmode=verify-full`],
    ['an authority that has not signed it', () => `sslrootcert=${other.ca}&sslmode=verify-ca`],
  ])('is refused with %s', async (_, query) => {
    expect(await opened('ann:geheim', query())).toMatch(/certificate|self-signed|unable to verify/)
  })

  it.each([
    ['a wrong password', 'ann:Geheim7', 'sslmode=require', /refuses this user .*check user and password/],
    ['no TLS', 'ann:geheim', 'sslmode=disable', /refuses this user .*pg_hba/],
  ])('refuses %s, and the message has no password', async (_, user, query, expected) => {
    const message = await opened(user, query)
    expect(message).toMatch(expected)
    expect(message.toLowerCase()).not.toContain('geheim')
  })
})
