/**
 * Writes docs/openapi.json, the OpenAPI document of the management API.
 */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { openApiDocument } from '../src/api/document.ts';
import { packageVersion } from '../src/version.ts';

const root = dirname(import.meta.dirname);
writeFileSync(join(root, 'docs', 'openapi.json'), openApiDocument(packageVersion()));
