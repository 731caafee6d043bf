/**
 * The certificates of a server of the operator stack, made here: an authority, a certificate for the
 * server's names, and those of its clients. Each end of a connection always knows the authority of the other:
 * 1. Two thirds into the life of the authority a new one joins it; servers and clients learn both.
 * 2. After a pause, in which each of them has learned it, the new one signs the certificates of the server
 *    and of its clients. Only a client without a certificate that servers accept gets one before.
 * 3. After another pause, in which each of them shows the new certificate, the old authority is dropped.
 * The scheduler of Kubernetes learns authorities only when it starts. The old authority therefore also signs
 * the new one, and the server shows that certificate, the bridge, until the old authority ends
 * (decision 0184).
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { type Issued, makeAuthority, makeCertificate, type Validity } from './x509.ts'

/** PEM. */
export interface OwnCertificates {
  /** One or two, the newest first. */
  readonly authorities: string
  /** Key of the newest authority. */
  readonly authorityKey: string
  /** Of the server, and the bridge if there is one. */
  readonly cert: string
  readonly key: string
}

const DAY_MS = 86_400_000
const AUTHORITY_LIFE_MS = 730 * DAY_MS
const SERVER_LIFE_MS = 90 * DAY_MS
/** Clocks of other hosts may be late. */
const BACKDATED_MS = 300_000
/** Replicas look at the certificates each minute. */
const SETTLED_AFTER_MS: DurationMs = 600_000

/** Returns `given` itself if nothing is due. Null, or one that cannot be read or is over: all new. */
export function renewedCertificates(
  given: OwnCertificates | null,
  subject: string,
  names: readonly string[],
  now: Instant,
): OwnCertificates {
  const read = given === null ? null : readCertificates(given, now)
  if (given === null || read === null) return allNew(subject, names, now)
  const { authorities, server } = read
  const newest = authorities[0] as X509Certificate
  if (isDue(newest, now)) return { ...given, ...newlyJoined(given, newest, server, subject, now) }
  const isOfNewest = server.checkIssued(newest)
  const isWanted = isDue(server, now) || !isOfNewest || names.some((name) => !hasName(server, name))
  if (isWanted && isSettled(authorities, now)) {
    const { cert, key } = newServer({ cert: newest.toString(), key: given.authorityKey }, subject, names, now)
    return { ...given, cert: cert + bridgeIn(given, now), key }
  }
  const isOldUnused = isOfNewest && authorities.length > 1 && ageMs(server, now) >= SETTLED_AFTER_MS
  return isOldUnused ? { ...given, authorities: newest.toString() } : given
}

/** Credentials of a client of the server, in PEM. */
export interface ClientCertificates {
  readonly authorities: string
  readonly cert: string
  readonly key: string
}

/**
 * Renews a client certificate like the server's, and lets the client learn the authorities at once. While
 * not every server knows the newest authority, the client keeps a certificate that one of them has signed.
 * Returns `given` if nothing is due.
 */
export function renewedClient(
  given: ClientCertificates | null,
  subject: string,
  { authorities, authorityKey }: OwnCertificates,
  now: Instant,
): ClientCertificates {
  const all = certificatesIn(authorities)
  const newest = all[0] as X509Certificate
  const keepsIt = (own: X509Certificate): boolean =>
    !isSettled(all, now) || (isSignedBy(own, newest) && !isDue(own, now))
  const own = given === null ? null : readClient(given, all, now)
  if (given !== null && own !== null && keepsIt(own))
    return given.authorities === authorities ? given : { ...given, authorities }
  const signed = makeCertificate(
    { cert: newest.toString(), key: authorityKey },
    { ...{ subject, names: [], purpose: 'client' }, validity: validity(now, AUTHORITY_LIFE_MS) },
  )
  return { authorities, ...signed }
}

export function expiryOf({ cert }: OwnCertificates): Instant {
  return new X509Certificate(cert).validToDate.getTime()
}

/** Null if they cannot be used, because they were changed by hand or have expired. */
function readCertificates(given: OwnCertificates, now: Instant) {
  try {
    const authorities = certificatesIn(given.authorities)
    const server = new X509Certificate(given.cert)
    const [newest] = authorities
    const isWhole =
      newest !== undefined &&
      newest.checkPrivateKey(createPrivateKey(given.authorityKey)) &&
      isValid(newest, now) &&
      isAccepted(server, given.key, authorities, now)
    return isWhole ? { authorities, server } : null
  } catch {
    return null
  }
}

/** Null if the servers would refuse it. */
function readClient(
  given: ClientCertificates,
  authorities: readonly X509Certificate[],
  now: Instant,
): X509Certificate | null {
  try {
    const own = new X509Certificate(given.cert)
    return isAccepted(own, given.key, authorities, now) ? own : null
  } catch {
    return null
  }
}

function isAccepted(
  own: X509Certificate,
  key: string,
  authorities: readonly X509Certificate[],
  now: Instant,
): boolean {
  const issuers = authorities.filter((each) => isSignedBy(own, each) && isValid(each, now))
  return own.checkPrivateKey(createPrivateKey(key)) && issuers.length > 0 && isValid(own, now)
}

/** With the bridge from the authority before to the one that joins it. */
function newlyJoined(
  { authorityKey }: OwnCertificates,
  before: X509Certificate,
  server: X509Certificate,
  subject: string,
  now: Instant,
): Omit<OwnCertificates, 'key'> {
  const { cert, key } = newAuthority(subject, now)
  const issuer = { cert: before.toString(), key: authorityKey }
  const span = { from: now - BACKDATED_MS, to: before.validToDate.getTime() }
  const bridge = makeAuthority(authorityName(subject), span, { key, issuer })
  return { authorities: cert + issuer.cert, authorityKey: key, cert: server.toString() + bridge.cert }
}

/** Empty: none is valid. */
function bridgeIn({ cert }: OwnCertificates, now: Instant): string {
  const valid = certificatesIn(cert).filter((each, index) => index > 0 && isValid(each, now))
  return valid.map(String).join('')
}

function allNew(subject: string, names: readonly string[], now: Instant): OwnCertificates {
  const authority = newAuthority(subject, now)
  return {
    authorities: authority.cert,
    authorityKey: authority.key,
    ...newServer(authority, subject, names, now),
  }
}

function newAuthority(subject: string, now: Instant): Issued {
  return makeAuthority(authorityName(subject), validity(now, AUTHORITY_LIFE_MS))
}

function authorityName(subject: string): string {
  return `${subject} authority`
}

function newServer(authority: Issued, subject: string, names: readonly string[], now: Instant): Issued {
  return makeCertificate(authority, {
    ...{ subject, names, purpose: 'server' },
    validity: validity(now, SERVER_LIFE_MS),
  })
}

function validity(now: Instant, lifeMs: DurationMs): Validity {
  return { from: now - BACKDATED_MS, to: now + lifeMs }
}

function certificatesIn(pem: string): readonly X509Certificate[] {
  const all = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return all.map((each) => new X509Certificate(each))
}

function isSignedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return certificate.verify(authority.publicKey)
}

/** Every server and client has learned the newest authority. */
function isSettled(authorities: readonly X509Certificate[], now: Instant): boolean {
  const newest = authorities[0] as X509Certificate
  return authorities.length === 1 || ageMs(newest, now) >= SETTLED_AFTER_MS
}

function ageMs({ validFromDate }: X509Certificate, now: Instant): DurationMs {
  return now - validFromDate.getTime() - BACKDATED_MS
}

/** Two thirds of its life are over. */
function isDue({ validFromDate, validToDate }: X509Certificate, now: Instant): boolean {
  const [from, to] = [validFromDate.getTime(), validToDate.getTime()]
  return now >= from + ((to - from) * 2) / 3
}

function isValid({ validFromDate, validToDate }: X509Certificate, now: Instant): boolean {
  return now >= validFromDate.getTime() && now < validToDate.getTime()
}

function hasName({ subjectAltName = '' }: X509Certificate, name: string): boolean {
  return subjectAltName.split(', ').includes(`DNS:${name}`)
}
