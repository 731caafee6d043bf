/**
 * `Idempotency-Key`: digests of the key and of the body, so that neither a secret nor a long text is kept.
 */
import { createHash } from 'node:crypto'
import type { SubmissionKey } from '../../model/command.ts'
import { invalidField } from '../http/errors.ts'

const KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/

/**
 * null when none was sent. A key is its caller's own: two callers may use the same.
 * @throws ApiProblem when the header is no key.
 */
export function submissionKey(
  header: string | readonly string[] | undefined,
  caller: string | null,
  body: unknown,
): SubmissionKey | null {
  if (header === undefined) return null
  if (typeof header !== 'string' || !KEY.test(header)) {
    throw invalidField(
      '/Idempotency-Key',
      'the header Idempotency-Key must be 1 to 255 printable ASCII characters',
    )
  }
  return {
    key: digestOf(caller === null ? `-\n${header}` : `=${caller}\n${header}`),
    body: digestOf(canonical(body)),
  }
}

/** The same text for the same value, in whatever order its fields were written. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
