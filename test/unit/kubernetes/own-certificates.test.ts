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
import {
  type ClientCertificates,
  type OwnCertificates,
  renewedCertificates,
  renewedClient,
} from '../../../operator/adapters/own-certificates.ts'
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

it('A client that knows only the authority before accepts the server until that authority ends', async () => {
  const now = Date.now()
  const first = renewed(null, now - 500 * DAY)
  let own = first
  for (let day = 470; day > 14; day -= 30) own = renewed(own, now - day * DAY)
  for (let minute = 60; minute >= 0; minute -= 10) own = renewed(own, now - minute * 60_000)
  const [leaf = '', bridge = ''] = own.cert.split(/(?<=END CERTIFICATE-----\n)/)
  expect([authoritiesOf(own), own.authorities === first.authorities]).toEqual([1, false])
  expect(await refusalOf(own, own.authorities, 'localhost')).toBeNull()
  expect(await refusalOf(own, first.authorities, 'localhost')).toBeNull()
  expect(await refusalOf({ ...own, cert: leaf }, first.authorities, 'localhost')).toMatch(/CERT|VERIFY/)
  const [authority, bridged] = [new X509Certificate(first.authorities), new X509Certificate(bridge)]
  expect(bridged.validTo).toBe(authority.validTo)
  for (let day = 60; day <= 240; day += 60) own = renewed(own, now + day * DAY)
  expect(own.cert).not.toContain(bridge)
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

/** Certificates of the server and of one of its clients, as minutes pass. */
interface Minute {
  readonly own: OwnCertificates
  readonly client: ClientCertificates
}
const LAG_MINUTES = 9
const clientAt = (given: ClientCertificates | null, own: OwnCertificates, now: number): ClientCertificates =>
  renewedClient(given, 'headroom-scheduler', own, now)
function knows(authorities: string, certificate: string): boolean {
  const issuers = authorities.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []
  const shown = new X509Certificate(certificate)
  return issuers.some((pem) => shown.verify(new X509Certificate(pem).publicKey))
}

/**
 * From ten minutes before a new authority joins until half an hour after.
 * @param clientDay on which the client has got its certificate
 */
function changeOfAuthority(clientDay: number): {
  readonly minutes: readonly Minute[]
  readonly joinsAt: number
} {
  let own = renewed(null, START)
  let client = clientAt(null, own, START)
  const minutes: Minute[] = []
  const pass = (now: number): void => {
    own = renewed(own, now)
    client = clientAt(client, own, now)
  }
  const [authority, joinsAt] = [own.authorities, START + 490 * DAY]
  for (let day = 10; day < 487; day += 10) {
    if (day === clientDay) client = clientAt(null, own, START + day * DAY)
    pass(START + day * DAY)
  }
  for (let minute = -10; minute < 0; minute += 1) minutes.push({ own, client })
  for (let minute = 0; minute <= 30; minute += 1) {
    pass(joinsAt + minute * 60_000)
    minutes.push({ own, client })
  }
  expect(minutes.map(({ own: each }) => authoritiesOf(each)).join('')).toBe(
    `${'1'.repeat(10)}${'2'.repeat(20)}${'1'.repeat(11)}`,
  )
  expect(own.authorities).not.toContain(authority.trim())
  return { minutes, joinsAt }
}

it.each([0, 400])(
  'During the change of an authority servers and a client of day %i accept each other if either lags',
  (clientDay) => {
    const { minutes } = changeOfAuthority(clientDay)
    for (const [at, { own, client }] of minutes.entries())
      for (let lag = 0; lag <= Math.min(LAG_MINUTES, at); lag += 1) {
        const late = minutes[at - lag] as Minute
        const seen = {
          lateClientKnowsServer: knows(late.client.authorities, own.cert),
          clientKnowsLateServer: knows(client.authorities, late.own.cert),
          serverKnowsLateClient: knows(own.authorities, late.client.cert),
          lateServerKnowsClient: knows(late.own.authorities, client.cert),
        }
        const all = Object.fromEntries(Object.keys(seen).map((each) => [each, true]))
        expect({ at, lag, ...seen }).toEqual({ at, lag, ...all })
      }
  },
)

it('A client that servers would refuse gets a certificate at once, also while a new authority joins', () => {
  const { minutes, joinsAt } = changeOfAuthority(0)
  const { own, client } = minutes[10] as Minute
  expect(authoritiesOf(own)).toBe(2)
  expect(clientAt(client, own, joinsAt)).toBe(client)
  const stranger = clientAt(null, renewed(null, joinsAt), joinsAt)
  const past = { from: START, to: joinsAt }
  const authority = { cert: own.authorities, key: own.authorityKey }
  const over = makeCertificate(authority, { subject: 'a', names: [], purpose: 'client', validity: past })
  for (const given of [null, stranger, over, { ...client, key: stranger.key }, { ...client, cert: 'none' }]) {
    const { authorities } = own
    const made = clientAt(given === null ? null : { ...given, authorities }, own, joinsAt)
    expect(made.cert).not.toBe(given?.cert)
    expect(knows(own.authorities, made.cert)).toBe(true)
  }
})
