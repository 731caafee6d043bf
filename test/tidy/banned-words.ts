/**
 * Words that Headroom's texts do not use: they make people of things or stand in for the field's nouns.
 * docs/glossary.md has the terms to use instead. Each entry is a regular expression, matched as whole words.
 */
export const BANNED: readonly string[] = [
  "nobody(?:'s)?",
  "somebody(?:'s)?",
  "anybody(?:'s)?",
  "everybody(?:'s)?",
  'whoever',
  'whom',
  'he',
  'him',
  'his',
  'anew',
  'foretold',
  'foretell(?:s|ing)?',
  'beside',
  'comes to',
  'come to (?=\\d|nothing|more|less)',
  'so many',
  'how many?ieth',
  'of it:',
  'is none',
  'are none',
  'stands there',
  'stand there',
  'lies in',
  'lie in',
  'in vain',
  'ripe',
  'ripen(?:s|ed|ing)?',
  'how often [^.]{0,40} at most so',
]
