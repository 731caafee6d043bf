/** Table of `operator`: requests to the REST API at given times. */
import {
  byKey,
  duration,
  integer,
  json,
  list,
  nullable,
  optional,
  optionalAbsent,
  record,
  required,
  textLike,
} from '../document/rule.ts'
import { MAX_TIME_MS } from './schema-workload.ts'

const MAX_ACTIONS = 10_000

const apiPath = textLike(/^\/api\/v1\/[^\s]+$/, 'a path that begins with /api/v1/', 1024)
const headerValue = nullable(textLike(/^[\x21-\x7e]+$/, 'text without blanks', 128))

const asked = {
  at: required(duration(0, MAX_TIME_MS), 'Time of the request.'),
  expect: optionalAbsent(
    nullable(integer(100, 599)),
    'Expected status; null: any. Default: any below 400, so that a refused action fails the run.',
  ),
  answer: optionalAbsent(
    json,
    'Expected part of the answer: maps must contain these keys, lists match item by item, other ' +
      'values are equal. Default: any answer.',
  ),
}
const ifMatch = optional(
  headerValue,
  null,
  'The If-Match header: an ETag of an earlier answer, with its quotes.',
)
const sent = required(json, 'The body.')

export const operatorRule = list(
  byKey({
    get: record({ get: required(apiPath, 'Reads.'), ...asked }),
    put: record({ put: required(apiPath, 'Replaces.'), body: sent, if_match: ifMatch, ...asked }),
    post: record({
      post: required(apiPath, 'Creates, or does.'),
      body: optional(json, null, 'The body; null sends none.'),
      if_match: ifMatch,
      idempotency_key: optional(
        headerValue,
        null,
        'The Idempotency-Key header: requests with the same key create one task.',
      ),
      as: optional(
        nullable(
          textLike(
            /^[A-Za-z][A-Za-z0-9_-]*$/,
            'a name of letters, digits, - and _ that begins with a letter',
            63,
          ),
        ),
        null,
        'Name of the created task, for {task:NAME} in later actions.',
      ),
      ...asked,
    }),
    patch: record({ patch: required(apiPath, 'Changes.'), body: sent, if_match: ifMatch, ...asked }),
    delete: record({ delete: required(apiPath, 'Takes away.'), if_match: ifMatch, ...asked }),
  }),
  0,
  MAX_ACTIONS,
)
