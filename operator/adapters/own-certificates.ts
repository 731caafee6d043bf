/**
 * The certificates of a server of the operator stack, made here: an authority, and a certificate for the
 * server's names. Renewal never leaves a client without an authority that it knows:
 * 1. Two thirds into the life of the authority a new one joins it; clients learn both.
 * 2. After a pause, in which every client has learned it, the new one signs the server's certificate.
 * 3. After another pause, in which every replica serves that, the old authority is dropped.
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
  if (isDue(newest, now)) {
    const authority = newAuthority(subject, now)
    return { ...given, authorities: authority.cert + newest.toString(), authorityKey: authority.key }
  }
  const isOfNewest = server.checkIssued(newest)
  const isWanted = isDue(server, now) || !isOfNewest || names.some((name) => !hasName(server, name))
  const isSettled = authorities.length === 1 || ageMs(newest, now) >= SETTLED_AFTER_MS
  if (isWanted && isSettled) {
    const authority = { cert: newest.toString(), key: given.authorityKey }
    return { ...given, ...newServer(authority, subject, names, now) }
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
 * Renews a client certificate like the server's: signed by the newest authority, with the same lifetime.
 * Returns `given` if no renewal is due.
 */
export function renewedClient(
  given: ClientCertificates | null,
  subject: string,
  { authorities, authorityKey }: OwnCertificates,
  now: Instant,
): ClientCertificates {
  const newest = new X509Certificate(authorities)
  if (given?.authorities === authorities && isOwn(given, newest, now)) return given
  const signed = makeCertificate(
    { cert: newest.toString(), key: authorityKey },
    { ...{ subject, names: [], purpose: 'client' }, validity: validity(now, AUTHORITY_LIFE_MS) },
  )
  return { authorities, ...signed }
}

function isOwn({ cert, key }: ClientCertificates, authority: X509Certificate, now: Instant): boolean {
  try {
    const own = new X509Certificate(cert)
    const isWhole = own.checkPrivateKey(createPrivateKey(key)) && own.verify(authority.publicKey)
    return isWhole && isValid(own, now) && !isDue(own, now)
  } catch {
    return false
  }
}

export function expiryOf({ cert }: OwnCertificates): Instant {
  return new X509Certificate(cert).validToDate.getTime()
}

/** Null if they cannot be used, because they were changed by hand or have expired. */
function readCertificates(given: OwnCertificates, now: Instant) {
  try {
    const authorities = certificatesIn(given.authorities).map((pem) => new X509Certificate(pem))
    const server = new X509Certificate(given.cert)
    const [newest] = authorities
    const isWhole =
      newest !== undefined &&
      newest.checkPrivateKey(createPrivateKey(given.authorityKey)) &&
      server.checkPrivateKey(createPrivateKey(given.key)) &&
      authorities.some((each) => server.verify(each.publicKey) && isValid(each, now)) &&
      isValid(newest, now) &&
      isValid(server, now)
    return isWhole ? { authorities, server } : null
  } catch {
    return null
  }
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
  return makeAuthority(`${subject} authority`, validity(now, AUTHORITY_LIFE_MS))
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

function certificatesIn(pem: string): readonly string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
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
