/** Table of `operator`: requests to the REST interface, each in its instant. */
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
} from './rule.ts'
import { MAX_TIME_MS } from './schema-workload.ts'

const MAX_ACTIONS = 10_000

const apiPath = textLike(/^\/api\/v1\/[^\s]+$/, 'a path that begins with /api/v1/', 1024)
const headerValue = nullable(textLike(/^[\x21-\x7e]+$/, 'text without blanks', 128))

const asked = {
  at: required(duration(0, MAX_TIME_MS), 'When it is asked.'),
  expect: optionalAbsent(
    nullable(integer(100, 599)),
    'The status it must be answered with; null takes any. Left out: any below 400, so that a refused action fails the run.',
  ),
  answer: optionalAbsent(
    json,
    'What the answer must contain: of maps these keys, of lists item by item, all else the same. Left out: anything.',
  ),
}
const ifMatch = optional(
  headerValue,
  null,
  'The If-Match header: the ETag that an answer had before, in its own quotes.',
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
        'The Idempotency-Key header: the same key makes one task.',
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
        'Name of the task that is made, for {task:NAME} in later actions.',
      ),
      ...asked,
    }),
    patch: record({ patch: required(apiPath, 'Changes.'), body: sent, if_match: ifMatch, ...asked }),
    delete: record({ delete: required(apiPath, 'Takes away.'), if_match: ifMatch, ...asked }),
  }),
  0,
  MAX_ACTIONS,
)
