/** Names of objects as the real API server checks and generates them. */
import type { FieldFault } from '../contract/field-fault.ts'
import type { ObjectMeta } from '../contract/kubernetes.ts'

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const MAX_NAME = 253
/** A longer prefix is cut before the suffix is appended. */
const MAX_PREFIX = 58

/** @param suffix lower-case letters and digits */
export function generatedName(prefix: string, suffix: string): string {
  return `${prefix.slice(0, MAX_PREFIX)}${suffix}`
}

export function nameFaults({ name = '', generateName }: ObjectMeta): readonly FieldFault[] {
  const message =
    'a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "-" or ".", and ' +
    'must start and end with an alphanumeric character'
  const faults: FieldFault[] = []
  // A prefix may end in a dash.
  if (generateName !== undefined && !isSubdomain(generateName.replace(/.-$/, 'a')))
    faults.push({ path: 'metadata.generateName', message })
  if (!isSubdomain(name)) faults.push({ path: 'metadata.name', message })
  return faults
}

function isSubdomain(text: string): boolean {
  return text.length <= MAX_NAME && SUBDOMAIN.test(text)
}
