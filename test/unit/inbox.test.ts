import { expect, test } from 'vitest'
import { clientInbox, whyNoAnswerTo } from '../../protocol/inbox.ts'
import { clientSubject, nodeSubject } from '../../protocol/subjects.ts'

const SUBMIT = clientSubject('lab', 'submit')
const HELLO = nodeSubject('689e58b2-6690-543b-8052-df1cfbe5b04e', 'hello')

test.each([
  [SUBMIT, `${clientInbox('lab')}.1`, null],
  [SUBMIT, '_INBOX.1', null],
  [SUBMIT, clientInbox('lab'), 'must begin with _INBOX_CLIENT.lab.'],
  [SUBMIT, `${clientInbox('lab2')}.1`, 'must begin with _INBOX_CLIENT.lab.'],
  [SUBMIT, '_INBOX_UABC.1', 'must begin with _INBOX_CLIENT.lab.'],
  [SUBMIT, 'gpu.v1.node.x.command', 'must begin with _INBOX'],
  [HELLO, '_INBOX_UABC.1', null],
  [HELLO, '_INBOX.1', null],
  [HELLO, `${clientInbox('lab')}.1`, 'is the inbox of a client'],
  [HELLO, 'gpu.v1.controller.leader', 'must begin with _INBOX'],
])('A request on %s with the reply subject %s has the verdict: %s', (subject, reply, why) => {
  expect(whyNoAnswerTo(subject, reply)).toBe(why)
})
