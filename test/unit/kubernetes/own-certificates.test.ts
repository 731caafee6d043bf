/** Certificates that Headroom makes: what others verify, and when they are renewed. */
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, it } from 'vitest'
import { type OwnCertificates, renewedCertificates } from '../../../operator/adapters/own-certificates.ts'
import { makeAuthority, makeCertificate } from '../../../operator/adapters/x509.ts'

const NAMES = ['headroom-admission.gpu.svc', 'localhost']
const DAY = 86_400_000
const START = Date.parse('2026-11-27T00:00:00Z')
const renewed = (given: OwnCertificates | null, now: number, names = NAMES): OwnCertificates =>
  renewedCertificates(given, 'headroom-admission', names, now)
const authoritiesOf = ({ authorities }: OwnCertificates): number => authorities.match(/BEGIN/g)?.length ?? 0

/** As a client sees it: null, or why it refuses. */
async function refusalOf(serving: OwnCertificates, ca: string, servername: string): Promise<string | null> {
  const server = createServer({ cert: serving.cert, key: serving.key }, (_request, response) =>
    response.end(),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  try {
    return await new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, ca, servername }, () => resolve(null))
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
      socket.on('secureConnect', () => socket.end())
    })
  } finally {
    server.close()
  }
}

it('A client that knows the authority accepts the server under its names, and under no other', async () => {
  const own = renewed(null, Date.now())
  expect(await refusalOf(own, own.authorities, 'localhost')).toBeNull()
  expect(await refusalOf(own, own.authorities, 'headroom-admission.gpu.svc')).toBeNull()
  expect(await refusalOf(own, own.authorities, 'other.example')).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  const stranger = renewed(null, Date.now())
  expect(await refusalOf(own, stranger.authorities, 'localhost')).toMatch(/CERT|VERIFY/)
})

it('OpenSSL accepts authority and certificates for their purpose only', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-x509-'))
  const at = (name: string): string => join(folder, name)
  try {
    const validity = { from: Date.now() - 1000, to: Date.now() + DAY }
    const authority = makeAuthority('an authority', validity)
    writeFileSync(at('ca.pem'), authority.cert)
    for (const purpose of ['server', 'client'] as const) {
      const { cert } = makeCertificate(authority, { subject: purpose, names: [], purpose, validity })
      writeFileSync(at(`${purpose}.pem`), cert)
    }
    const verify = (name: string, purpose: string): string =>
      execFileSync(
        'openssl',
        ['verify', '-x509_strict', '-CAfile', at('ca.pem'), '-purpose', purpose, at(name)],
        { stdio: 'pipe' },
      ).toString()
    expect(verify('server.pem', 'sslserver')).toContain('OK')
    expect(verify('client.pem', 'sslclient')).toContain('OK')
    expect(() => verify('client.pem', 'sslserver')).toThrow()
    // A server cannot sign another certificate.
    const { ca } = new X509Certificate(authority.cert)
    expect([ca, new X509Certificate(renewed(null, START).cert).ca]).toEqual([true, false])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('Dates beyond 2049 are written as the standard demands', () => {
  const validity = { from: Date.parse('2049-12-31T23:59:59Z'), to: Date.parse('2050-01-01T00:00:00Z') }
  const { validFromDate, validToDate } = new X509Certificate(makeAuthority('late', validity).cert)
  expect([validFromDate.getTime(), validToDate.getTime()]).toEqual([validity.from, validity.to])
})

it('Nothing is renewed before two thirds of its life, and then the server alone', () => {
  const first = renewed(null, START)
  expect(renewed(first, START + 59 * DAY)).toBe(first)
  const second = renewed(first, START + 61 * DAY)
  expect(second.cert).not.toBe(first.cert)
  expect(second.authorities).toBe(first.authorities)
})

it('A new name, a key of another certificate and an unreadable text are mended', () => {
  const first = renewed(null, START)
  const named = renewed(first, START + DAY, [...NAMES, 'new.example'])
  expect(new X509Certificate(named.cert).subjectAltName).toContain('DNS:new.example')
  const mixed = renewed({ ...first, key: renewed(null, START).key }, START)
  expect(mixed.authorities).not.toBe(first.authorities)
  expect(renewed({ ...first, cert: 'none' }, START).authorities).not.toBe(first.authorities)
})

it('During the change of an authority every client that lags ten minutes accepts every replica', async () => {
  let own = renewed(null, START)
  let known = own.authorities
  const seen: [authorities: number, isNewAuthority: boolean][] = []
  const first = own.authorities
  // Renewed until two thirds of the authority's life are over.
  for (let day = 30; day < 500; day += 10) {
    const next = renewed(own, START + day * DAY)
    if (authoritiesOf(next) > 1) {
      own = next
      break
    }
    own = next
  }
  expect(authoritiesOf(own)).toBe(2)
  const since = new X509Certificate(own.authorities).validFromDate.getTime() + 300_000
  for (let minute = 0; minute <= 30; minute += 1) {
    const before = own
    own = renewed(own, since + minute * 60_000)
    const server = new X509Certificate(own.cert)
    const issuers = (known.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []).map(
      (pem) => new X509Certificate(pem),
    )
    expect(issuers.some((each) => server.verify(each.publicKey))).toBe(true)
    seen.push([authoritiesOf(own), !own.authorities.includes(first)])
    // A client learns what the minutes before knew.
    if (minute % 5 === 4) known = before.authorities
  }
  expect(seen[0]).toEqual([2, false])
  expect(seen.at(-1)).toEqual([1, true])
})
