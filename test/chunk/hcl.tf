terraform {
  required_version = ">= 1.5"
}

variable "region" {
  type    = string
  default = "eu-west-1"
}

# Where the files are kept.
resource "aws_s3_bucket" "files" {
  bucket = "files-${var.region}"

  lifecycle {
    prevent_destroy = true
  }
}

output "bucket" { value = aws_s3_bucket.files.id }
