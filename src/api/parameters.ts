/**
 * Parameters that several routes take, checked alike, and what is said where one is wrong.
 */
import { z } from '@hono/zod-openapi';
import { runIdAt } from './cursor.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

/** What is wrong with a parameter; one that is given twice comes as a list. */
export const wrong = (text: string) => ({
  error: ({ input }: { readonly input?: unknown }) => (Array.isArray(input) ? 'must be given once' : text),
});

const WRONG_LIMIT = wrong(`must be a whole number from 1 to ${MAX_LIMIT}`);
const WRONG_CURSOR = wrong('must be a next_cursor as it was given');

export const uuid = z.uuidv7().lowercase();
const isRunId = (text: string): boolean => uuid.safeParse(text).success;

/** Of an app or a project. */
export const name = (of: string) => {
  const error = wrong(`must be the name of ${of}`);
  return z.string(error).regex(NAME, error);
};

/** Of a page of a list. */
export const PAGE = {
  limit: z
    .string(WRONG_LIMIT)
    .regex(/^\d+$/, WRONG_LIMIT)
    .transform(Number)
    .pipe(z.number().min(1, WRONG_LIMIT).max(MAX_LIMIT, WRONG_LIMIT))
    .default(DEFAULT_LIMIT)
    .openapi({ type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT }),
  cursor: z
    .string(WRONG_CURSOR)
    .transform(runIdAt)
    .refine(isRunId, WRONG_CURSOR)
    .optional()
    .openapi({ type: 'string', description: '`next_cursor` of the page before' }),
};

/** The project of whoever asks, unless that is everyone's to choose. */
export const projectParameter = name('a project')
  .optional()
  .openapi({ description: 'One project alone, for holders of the admin token; any other has its own' });

export const nextCursor = z.string().nullable().openapi({ description: 'Null on the last page' });

export const time = z.iso.datetime();
